"""What administrators and commands do with accounts. Every change is a row of the audit log."""
