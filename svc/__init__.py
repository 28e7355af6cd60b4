"""The service: accounts, keys, limits, chat and agents in front of any OpenAI-compatible model server."""
