"""Draws the results of proofs/compensated.py and of other profilers: docs/how/compensated.svg."""

from html import escape

ROW, BAR, LEFT, WIDTH, TOP = 62, 11, 110, 640, 58
MOST = 4.5  # multiples of the bare run, at the right edge
SERIES = (  # name, colour
    ("compensated", "#2a7f62"),
    ("vestige", "#8cc5b0"),
    ("cProfile", "#d9a441"),
    ("VizTracer", "#b8bcc8"),
)


def text(x, y, words, anchor="start", size=12):
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}">{escape(words)}</text>'


def at(times):
    return LEFT + (WIDTH - LEFT - 50) * min(times, MOST) / MOST


def draw(rows, version):
    """rows: the program, then multiples of the bare run, in the order of SERIES; None: not measured."""
    height = TOP + ROW * len(rows) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        text(10, 20, f"CPU time that a profiler shows, in times the bare run (CPython {version})", size=14),
    ]
    for number, (name, colour) in enumerate(SERIES):
        x = LEFT + 120 * number
        parts.append(f'<rect x="{x}" y="32" width="12" height="12" fill="{colour}"/>' + text(x + 17, 42, name))
    for number, (program, *values) in enumerate(rows):
        y = TOP + ROW * number
        parts.append(text(LEFT - 8, y + ROW / 2, program, "end"))
        for place, (value, (_, colour)) in enumerate(zip(values, SERIES)):
            if value is None:
                continue
            top = y + 5 + place * (BAR + 1)
            parts.append(
                f'<rect x="{LEFT}" y="{top}" width="{at(value) - LEFT:.1f}" height="{BAR}" fill="{colour}"/>'
                + text(at(value) + 4, top + BAR - 1, f"{value:.2f}", size=10)
            )
    parts.append(f'<path d="M{at(1):.1f} {TOP}V{height - 8}" stroke="#c0392b" stroke-dasharray="4 3"/>')
    parts.append(text(at(1), TOP - 2, "bare", "middle", 10))
    return "\n".join([*parts, "</svg>", ""])
