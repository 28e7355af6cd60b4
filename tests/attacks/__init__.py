"""Every attack on the bounds of the service, each a function; `python -m tests.attacks` plays them and prints what they
did.

To add one: in the module of its part (or a new module here, which is found by itself) write

    @attack("what is sent, in a few words")
    async def name_of_it(lab: Lab) -> None:
        await lab.post("/v1/chat/completions", {...})

During an attack, a probe with another address and account measures the waits of others, and the server's own loop
measures its stalls. The attack itself judges nothing. Each attack has its own account and addresses, so that several
can run on one server.
"""
