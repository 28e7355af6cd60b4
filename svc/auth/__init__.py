"""Who somebody is: accounts, passwords, sessions and keys, identities elsewhere, mail.

Every other room takes an account id from here and trusts it.
It may not know of money, models, conversations or HTTP answers.
"""
