"""Lists of events and of averages, with torch.profiler's ways to show and export them."""

from __future__ import annotations

from .events import torchs
from .table import format_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from .averages import FunctionEventAvg
    from .results import Results


class EventList(list):  # type: ignore[type-arg]
    """Events or averages, with torch.profiler's ways to show them."""

    def __init__(
        self,
        events: Iterable[Any] = (),
        *,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
        results: Results | None = None,
    ) -> None:
        super().__init__(events)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._results = results

    def __reduce_ex__(self, protocol: object) -> Any:
        """A copy has the events, but not their trace."""
        options = {
            "use_device": self._use_device,
            "profile_memory": self._profile_memory,
            "with_flops": self._with_flops,
        }
        return _restored_list, (options,), None, iter(self)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Returns the HTML that a notebook shows: names by their own time."""
        from vestige.reading.overview import of_events

        return of_events(self).html(20)

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of all own times, in µs."""
        total: float = sum(event.self_cpu_time_total for event in self)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """A table of them, as torch.profiler prints it.

        sort_by is a field: cpu_time, cpu_time_total, self_cpu_time_total, cpu_memory_usage, self_cpu_memory_usage,
        device_time, device_time_total, self_device_time_total or count, highest first. time_unit is s, ms or us, for
        all values.
        """
        return format_table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool | None = None,
    ) -> EventList:
        """Returns averages over the events of each name; see profile.key_averages()."""
        from .averages import average_events

        if self._results is not None and self._is_whole():
            return self._results.key_averages(
                group_by_input_shapes, group_by_stack_n, group_by_overload_name, include_python_functions
            )
        rows = average_events(self, group_by_input_shapes, group_by_stack_n, group_by_overload_name)
        shown = {"profile_memory": self._profile_memory, "with_flops": self._with_flops}
        averages: EventList = torchs(EventList)(rows, use_device=self._use_device, **shown)
        return averages

    def _is_whole(self) -> bool:
        """Returns whether the list still holds all the events that it was made with."""
        return self._results is not None and len(self) == self._results.store.size

    def total_average(self) -> FunctionEventAvg:
        """Returns the sum of all events, named Total."""
        from .averages import FunctionEventAvg

        total: FunctionEventAvg = torchs(FunctionEventAvg)()
        for event in self:
            total.key = None
            total.add(event)
        total.key = "Total"
        return total

    def supported_export_stacks_metrics(self) -> list[str]:
        from .stacks import STACK_METRICS

        return list(STACK_METRICS)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes the stacks of the events with their own times, for flame graphs."""
        from .stacks import check_metric, write_stacks

        check_metric(metric)
        write_stacks(
            path, ((event.stack[::-1], int(event.self_cpu_time_total * 1000)) for event in self if event.stack)
        )

    def export_chrome_trace(self, path: str) -> None:
        """Writes the recording that these events belong to as Chrome JSON."""
        if self._results is None:
            raise RuntimeError("only the list that events() returns can be exported")
        self._results.export(path)


def _restored_list(options: dict[str, Any]) -> EventList:
    made: EventList = torchs(EventList)(**options)
    return made


class LazyEvents(EventList):
    """The list that events() returns. The events are made when the program first looks at the list."""

    _made = False

    def __init__(self, results: Results, **options: Any) -> None:
        super().__init__(results=results, **options)
        self._store = results.store

    def _make(self) -> None:
        if not self._made:
            self._made = True
            super().extend(self._store.all_events)

    def _is_whole(self) -> bool:
        return not self._made or super()._is_whole()

    def __len__(self) -> int:
        return super().__len__() if self._made else self._store.size

    def __iter__(self) -> Iterator[Any]:
        self._make()
        return super().__iter__()

    def __bool__(self) -> bool:
        return len(self) > 0


def _after_making(name: str) -> Any:
    method = getattr(list, name)

    def call(self: LazyEvents, *args: Any, **kwargs: Any) -> Any:
        self._make()
        return method(self, *args, **kwargs)

    call.__name__ = name
    return call


_SPECIAL = "getitem setitem delitem contains reversed add iadd mul rmul eq ne lt le gt ge repr"
_PLAIN = "append extend insert pop remove clear index count sort reverse copy"
for _name in (*(f"__{word}__" for word in _SPECIAL.split()), *_PLAIN.split()):
    setattr(LazyEvents, _name, _after_making(_name))
LazyEvents.__hash__ = None
