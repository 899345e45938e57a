import asyncio


async def step():
    for _ in range(300):
        sum(range(5_000))
        await asyncio.sleep(0)


async def main():
    await asyncio.gather(step(), step(), step())


asyncio.run(main())
