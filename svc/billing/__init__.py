"""Money: the wallet and its ledger, usage, payments through a checkout.

Amounts are integer micros; the schema keeps the books, the code here only writes entries.
It may not know what is bought: no models, no agents, no HTTP answers.
"""
