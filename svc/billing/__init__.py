"""Money: the wallet and its ledger, usage, payments through a checkout.

Amounts are integer micros. The schema keeps the books; this code only inserts entries.
It may not know of models, agents or HTTP answers.
"""
