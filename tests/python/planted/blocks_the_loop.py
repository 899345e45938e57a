import asyncio
import time


async def tick():
    for _ in range(20):
        await asyncio.sleep(0.001)


async def handler():
    time.sleep(0.2)


async def main():
    await asyncio.gather(tick(), tick(), handler())


asyncio.run(main())
