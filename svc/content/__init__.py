"""What an account keeps: artifacts, projects, prompts, conversations with their memory and search, support.

Every statement names the account that owns the row.
It may not know of models, money or HTTP answers.
"""
