"""Every attack on the bounds of the service, each a function; `python -m tests.attacks` plays them and prints what they did.

To add one: in the module of its part (or a new module here, which is found by itself) write

    @attack("what is sent, in a few words")
    async def name_of_it(lab: Lab) -> None:
        await lab.post("/v1/chat/completions", {...})

A probe from another address and account measures meanwhile what others notice, and the server's own loop its stalls; the attack
itself judges nothing. Each has an account and addresses of its own, so that many can meet one server.
"""
