"""An ASGI application without a framework, with the word that the client changes."""

import asyncio

WORD = "first"


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    if scope["path"] == "/word":
        body = WORD.encode()
    else:
        parts = await asyncio.gather(*(part(number) for number in range(10)))
        body = str(sum(parts)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": body})


async def part(number):
    await asyncio.sleep(0)
    return sum(range(number * 10))
