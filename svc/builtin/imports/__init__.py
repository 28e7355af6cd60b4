"""Exports of other chat applications and of this service, read in a helper process.

reader.py -> the export's files -> a module for each application -> chats.py: messages in order -> lines for the server
"""
