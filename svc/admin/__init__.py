"""What administrators and the operator's commands do with accounts.

Every change is a row of the audit log. `svc user` and the paths below /admin run the same functions.
"""
