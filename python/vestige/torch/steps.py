"""Schedules in torch.profiler's terms: what a profile does in each step of the program."""

from __future__ import annotations

import enum
import os
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ClassVar

    from vestige.profiler import profile

STEP_NAME = "ProfilerStep"


class ProfilerAction(enum.Enum):
    """The action of a profile during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3  # the last step of a cycle, after which the cycle's results are ready
    DEVICE_STOPPED = 4  # for devices that stop by themselves; no schedule returns this action


RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Cycles of `wait` idle steps, `warmup` steps to get ready and `active` steps that are recorded.

    skip_first steps pass before the first cycle; with skip_first_wait the first cycle has no wait. There are
    `repeat` cycles; 0 means as many as fit into the program's steps.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    cycle = wait + warmup + active
    shift = (wait if skip_first_wait else 0) - skip_first

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        number, place = divmod(step + shift, cycle)
        if step < skip_first or (repeat and number >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == cycle - 1 else ProfilerAction.RECORD

    return action


def _default_schedule_fn(_: int) -> ProfilerAction:
    """Records from start to stop."""
    return ProfilerAction.RECORD


def ask(plan: Callable[[int], object], step: int) -> ProfilerAction:
    """Returns the action of a schedule; torch's own actions are converted to ours."""
    answer = plan(step)
    if not isinstance(answer, ProfilerAction):
        name = str(getattr(answer, "name", ""))
        if type(answer).__name__ != "ProfilerAction" or name not in ProfilerAction.__members__:
            raise TypeError(f"a schedule must return a ProfilerAction, not {answer!r}")
        answer = ProfilerAction[name]
    if answer is ProfilerAction.DEVICE_STOPPED:
        raise ValueError(
            "ProfilerAction.DEVICE_STOPPED is set internally by the profiler "
            "and must not be returned by a user-provided schedule"
        )
    return answer


def transit(prof: profile, before: ProfilerAction, now: ProfilerAction | None) -> None:
    """Starts or stops recording as needed between two steps; `now` is None at the end."""
    goes_on = before is ProfilerAction.RECORD and now in RECORDING
    if before in RECORDING and not goes_on:
        if before is ProfilerAction.RECORD and now is not None:
            _warn(f"Incorrect schedule: RECORD followed by {now.name}")
        prof._stop_trace()
        if before is ProfilerAction.RECORD_AND_SAVE or now is None:
            prof._trace_ready()
    if before is ProfilerAction.WARMUP and now in (ProfilerAction.NONE, None):
        if now is not None:
            _warn("Incorrect schedule: WARMUP followed by NONE")
        prof._start_trace()
        prof._stop_trace()
    if now in RECORDING and not goes_on:
        if before is not ProfilerAction.WARMUP:
            prof._prepare_trace()
        prof._start_trace()
    elif now is ProfilerAction.WARMUP and before is not ProfilerAction.WARMUP:
        prof._prepare_trace()


def advance(prof: profile) -> None:
    """Called when the program's next step begins."""
    prof._end_step()
    before = prof.current_action
    now = ask(prof.schedule, prof.step_num + 1)
    prof.step_num += 1
    prof.current_action = now
    transit(prof, before, now)
    if os.environ.get("KINETO_USE_DAEMON"):  # torch counts steps under this condition too
        KinetoStepTracker.increment_step(STEP_NAME)
    prof._begin_step()


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=5)  # the line of the program that calls step()


class KinetoStepTracker:
    """Counts the steps of each requester, such as the profiler and optimizers. The overall count is the highest of
    these counts.
    """

    _current_step = 0
    _step_dict: ClassVar[dict[str, int]] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Lets a requester begin at the current step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forgets a requester. Returns whether it was known."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Counts one more step of a requester. Returns the overall count."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        highest = max(cls._step_dict.values())
        if highest > cls._current_step + 1:
            warnings.warn(
                f"Profiler step count has increased more than 1 - current_step = {cls._current_step} "
                f"step dict =  {cls._step_dict}",
                stacklevel=2,
            )
        cls._current_step = max(highest, cls._current_step)
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """Returns the overall count."""
        return cls._current_step
