"""Generators and coroutines: every resume is a span with the generator's name."""

import asyncio
import types

import pytest

from differential.facts import Interpreter
from tree import by_version, calls, expected, names, record, short, tree


def leaf():
    pass


def numbers():
    leaf()
    yield 1
    leaf()
    yield 2


def stubborn():
    try:
        yield 1
    except ValueError:
        leaf()
        yield 2


def test_every_resume_is_a_span_of_the_same_name():
    def outer():
        for _ in numbers():
            pass

    trace = record(outer)
    full = {event["name"] for event in calls(trace) if short(event["name"]) == "numbers"}
    assert len(full) == 1
    assert tree(outer) == expected(
        """
        outer
          numbers
            leaf
          numbers
            leaf
          numbers
        """
    )


def test_next_and_send_resume_inside_the_c_call():
    def outer():
        generator = numbers()
        next(generator)
        generator.send(None)
        with pytest.raises(StopIteration):
            next(generator)

    text = tree(outer)
    assert text.startswith(
        expected(
            """
            outer
              <next>
                numbers
                  leaf
              <generator.send>
                numbers
                  leaf
            """
        )
    )
    assert "<next> (raised)\n" in text


def test_throw_that_is_caught_resumes_and_goes_on():
    def outer():
        generator = stubborn()
        next(generator)
        generator.throw(ValueError())
        generator.close()

    assert tree(outer) == expected(
        """
        outer
          <next>
            stubborn
          <generator.throw>
            stubborn
              leaf
          <generator.close>
            stubborn (raised)
        """
    )


def test_throw_that_is_not_caught_ends_both_by_the_exception():
    def outer():
        generator = numbers()
        next(generator)
        try:
            generator.throw(KeyError())
        except KeyError:
            pass

    assert tree(outer) == expected(
        """
        outer
          <next>
            numbers
              leaf
          <generator.throw> (raised)
            numbers (raised)
        """
    )


def test_throw_into_a_generator_that_never_ran():
    def outer():
        generator = numbers()
        try:
            generator.throw(KeyError())
        except KeyError:
            pass

    assert tree(outer) == expected(
        """
        outer
          <generator.throw> (raised)
            numbers (raised)
        """
    )


def test_closing_a_generator_that_never_ran_enters_it_until_3_12():
    def outer():
        numbers().close()

    assert tree(outer) == by_version(
        v311="""
        outer
          <generator.close>
            numbers (raised)
        """,
        v312="""
        outer
          <generator.close>
        """,
    )


def test_close_ends_a_suspended_generator_by_an_exception():
    def outer():
        generator = numbers()
        next(generator)
        generator.close()

    entered = "numbers (raised)" if Interpreter.close_enters_where_nothing_can_catch else ""
    assert tree(outer) == expected(
        f"""
        outer
          <next>
            numbers
              leaf
          <generator.close>
            {entered}
        """
    )


def test_a_generator_dropped_half_way_is_ended_where_it_was_dropped():
    def cleaning():
        try:
            yield 1
        finally:
            leaf()

    def outer():
        generator = cleaning()
        next(generator)
        del generator
        leaf()

    assert tree(outer) == expected(
        """
        outer
          <next>
            cleaning
          cleaning (raised)
            leaf
          leaf
        """
    )


def test_yield_from_resumes_the_whole_chain():
    def delegating():
        yield from numbers()

    def outer():
        for _ in delegating():
            pass

    assert tree(outer) == expected(
        """
        outer
          delegating
            numbers
              leaf
          delegating
            numbers
              leaf
          delegating
            numbers
        """
    )


def test_throw_through_yield_from_reaches_the_innermost():
    def delegating():
        yield from stubborn()

    def outer():
        generator = delegating()
        next(generator)
        generator.throw(ValueError())
        for _ in generator:
            pass

    text = tree(outer)
    assert names(record(outer))["leaf"] == 1
    lines = [line.strip() for line in text.splitlines()]
    assert lines.index("leaf") > lines.index("<generator.throw>")
    assert lines[-2:] == ["delegating", "stubborn"]


def test_a_generator_that_raises_is_marked():
    def failing():
        yield 1
        raise KeyError

    def outer():
        try:
            for _ in failing():
                pass
        except KeyError:
            pass

    assert tree(outer) == expected(
        """
        outer
          failing
          failing (raised)
        """
    )


def test_a_generator_entered_twice_at_once_fails_once():
    def greedy():
        yield next(me)

    def outer():
        nonlocal me
        me = greedy()
        try:
            next(me)
        except ValueError:
            pass

    me = None
    assert tree(outer) == expected(
        """
        outer
          <next> (raised)
            greedy (raised)
              <next> (raised)
        """
    )


def test_generators_interleaved_by_hand_nest_as_they_run():
    def outer():
        first, second = numbers(), numbers()
        next(first)
        next(second)
        next(second)
        next(first)
        for _ in first:
            pass
        for _ in second:
            pass

    counts = names(record(outer))
    assert counts == {"outer": 1, "<next>": 4, "numbers": 6, "leaf": 4}


def test_a_coroutine_driven_by_hand_is_resumed_like_a_generator():
    @types.coroutine
    def pause():
        yield

    async def inner():
        await pause()
        return 5

    async def main():
        return await inner()

    def outer():
        coroutine = main()
        coroutine.send(None)
        try:
            coroutine.send(None)
        except StopIteration as stop:
            assert stop.value == 5

    assert tree(outer) == expected(
        """
        outer
          <coroutine.send>
            main
              inner
                pause
          <coroutine.send> (raised)
            main
              inner
                pause
        """
    )


def test_a_coroutine_that_is_never_awaited_is_closed_like_a_generator():
    async def main():
        leaf()

    def outer():
        main().close()

    assert tree(outer) == by_version(
        v311="""
        outer
          <coroutine.close>
            main (raised)
        """,
        v312="""
        outer
          <coroutine.close>
        """,
    )


def test_async_generators_and_async_with_and_for():
    async def ticks():
        for number in range(3):
            leaf()
            yield number

    class Manager:
        async def __aenter__(self):
            leaf()

        async def __aexit__(self, *exc):
            leaf()

    async def main():
        async with Manager():
            async for _ in ticks():
                pass

    def outer():
        try:
            main().send(None)
        except StopIteration:
            pass

    assert tree(outer) == expected(
        """
        outer
          <coroutine.send> (raised)
            main
              __aenter__
                leaf
              ticks
                leaf
              ticks
                leaf
              ticks
                leaf
              ticks
              __aexit__
                leaf
        """
    )


def test_an_async_generator_dropped_half_way_is_closed():
    async def ticks():
        try:
            yield 1
            yield 2
        finally:
            leaf()

    async def main():
        async for _ in ticks():
            break

    def outer():
        asyncio.run(main())

    counts = names(record(outer))
    assert counts["leaf"] == 1
    assert counts["ticks"] == 2


def test_gathered_tasks_interleave_without_mis_nesting():
    async def work(number):
        leaf()
        for _ in range(number):
            await asyncio.sleep(0)
            leaf()

    async def main():
        await asyncio.gather(*(work(number) for number in range(4)))

    def outer():
        asyncio.run(main())

    counts = names(record(outer))
    assert counts["work"] == 4 + 1 + 2 + 3  # a start, and a resume after each sleep
    assert counts["leaf"] == 4 + 1 + 2 + 3


def test_a_cancelled_task_ends_by_an_exception():
    async def forever():
        await asyncio.sleep(60)

    async def main():
        task = asyncio.ensure_future(forever())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    def outer():
        asyncio.run(main())

    spans = [event for event in calls(record(outer)) if short(event["name"]) == "forever"]
    assert [bool(span["args"].get("raised")) for span in spans] == [False, True]


def test_a_task_group_that_fails_shows_each_task():
    async def bad():
        await asyncio.sleep(0)
        raise KeyError

    async def good():
        await asyncio.sleep(60)

    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(good())
            group.create_task(bad())

    def outer():
        with pytest.raises(BaseExceptionGroup):
            asyncio.run(main())

    counts = names(record(outer))
    assert counts["bad"] == 2
    assert counts["good"] == 2
