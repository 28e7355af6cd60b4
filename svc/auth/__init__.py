"""Authentication: accounts, passwords, sessions and keys, identities at other providers, mail.

Every other package takes an account id from here and trusts it.
It may not know of money, models, conversations or HTTP answers.
"""
