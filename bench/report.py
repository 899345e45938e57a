"""Tables of results, with the bar next to each figure that has one: as text, Markdown or JSON."""

import dataclasses
import sys


def say(what):
    """Prints to stderr what is being measured, because everything together takes minutes."""
    print(f"  {what}", file=sys.stderr, flush=True)


@dataclasses.dataclass
class Check:
    """A figure and its bar."""

    text: str  # the figure
    bar: str
    met: bool

    def __str__(self):
        return f"{self.text} (<= {self.bar}) {'met' if self.met else 'MISSED'}"


def at_most(what, value, bar, shown=None):
    """A check; `what` is the figure with its unit, or only the unit."""
    text = what if any(c.isdigit() for c in what) else f"{value:.4g} {what}"
    return Check(text, shown or f"{bar:g}", value <= bar)


@dataclasses.dataclass
class Row:
    label: str
    values: dict  # {column: figure}
    checks: list
    digits: int

    def cell(self, column):
        value = self.values.get(column)
        return "-" if value is None else f"{value:,.{self.digits}f}"


class Table:
    def __init__(self, title, columns, unit=""):
        self.title = f"{title} ({unit})" if unit else title
        self.columns = columns
        self.rows = []

    def add(self, label, values, checks=(), digits=1):
        self.rows.append(Row(label, values, list(checks), digits))

    def text(self):
        first = max(20, *(len(row.label) for row in self.rows)) + 1
        widths = [max(len(column), 7) + 2 for column in self.columns]
        lines = [self.title, " " * first + "".join(c.rjust(w) for c, w in zip(self.columns, widths))]
        for row in self.rows:
            line = row.label.ljust(first) + "".join(row.cell(c).rjust(w) for c, w in zip(self.columns, widths))
            notes = [str(check) for check in row.checks] or [""]
            lines.append(f"{line}   {notes[0]}".rstrip())
            lines += [" " * len(line) + "   " + note for note in notes[1:]]
        return "\n".join(lines) + "\n"

    def markdown(self):
        lines = [
            f"**{self.title}**\n",
            f"| | {' | '.join(self.columns)} | bar |",
            "|---|" + "---:|" * len(self.columns) + "---|",
        ]
        for row in self.rows:
            cells = [row.label, *(row.cell(column) for column in self.columns)]
            lines.append(f"| {' | '.join(cells)} | {'; '.join(map(str, row.checks))} |")
        return "\n".join(lines) + "\n"

    def data(self):
        return {"title": self.title, "columns": self.columns, "rows": [dataclasses.asdict(row) for row in self.rows]}

    @classmethod
    def of_data(cls, data):
        """Restores a report from data(), which may have been stored in a file."""
        table = cls(data["title"], data["columns"])
        for row in data["rows"]:
            table.rows.append(Row(**{**row, "checks": [Check(**check) for check in row["checks"]]}))
        return table

    def missed(self):
        return [f"{self.title}, {row.label}: {check}" for row in self.rows for check in row.checks if not check.met]
