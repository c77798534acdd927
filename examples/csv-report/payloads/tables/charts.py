"""Charts as inline SVG. Each has a title and a description for those who do not see it, and takes its colours from
the page, so that it is as readable on a dark one."""

from html import escape

WIDTH = 480
LABEL_CHARS = 22


def svg(number, height, title, description, content):
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="c{number}t c{number}d">'
        f'<title id="c{number}t">{escape(title)}</title><desc id="c{number}d">{escape(description)}</desc>'
        f"{content}</svg>"
    )


def bars(number, title, items):
    """Lying bars, one for each (label, value)."""
    most = max((value for _, value in items), default=0) or 1
    rows = []
    for place, (label, value) in enumerate(items):
        y = place * 26
        length = max(1.5, 250 * value / most)
        rows.append(
            f'<text class="label" x="150" y="{y + 17}">{escape(cut(label))}</text>'
            f'<rect x="158" y="{y + 5}" width="{length:.1f}" height="16" rx="2"><title>{escape(label)}: {amount(value)}</title></rect>'
            f'<text class="value" x="{166 + length:.1f}" y="{y + 17}">{amount(value)}</text>'
        )
    description = "; ".join(f"{label}: {amount(value)}" for label, value in items)
    return svg(number, 26 * len(items) + 4, title, description, "".join(rows))


def histogram(number, title, bins):
    """Standing bars, one for each [from, to, count]."""
    most = max(count for *_, count in bins) or 1
    step = (WIDTH - 20) / len(bins)
    columns = []
    for place, (begin, end, count) in enumerate(bins):
        height = 130 * count / most
        columns.append(
            f'<rect x="{10 + place * step:.1f}" y="{140 - height:.1f}" width="{max(1.0, step - 2):.1f}" height="{height:.1f}">'
            f"<title>{amount(begin)} to {amount(end)}: {amount(count)}</title></rect>"
        )
    axis = f'<path class="axis" d="M10 140.5H{WIDTH - 10}"/>' + ticks(
        [amount(bins[0][0]), amount((bins[0][0] + bins[-1][1]) / 2), amount(bins[-1][1])]
    )
    description = "; ".join(f"{amount(begin)} to {amount(end)}: {amount(count)}" for begin, end, count in bins)
    return svg(number, 165, title, description, "".join(columns) + axis)


def line(number, title, points):
    """A line through [(label, value)], from zero, or from below where there are values below."""
    least, most = min(0.0, min(value for _, value in points)), max(0.0, max(value for _, value in points))
    height = (most - least) or 1.0
    step = (WIDTH - 70) / max(1, len(points) - 1)
    places = [(60 + i * step, 135 - 125 * (value - least) / height) for i, (_, value) in enumerate(points)]
    zero = 135 - 125 * (0 - least) / height
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    area = f"60,{zero:.1f} {path} {places[-1][0]:.1f},{zero:.1f}"
    content = (
        f'<path class="axis" d="M60 10.5H{WIDTH - 10}M60 {zero:.1f}H{WIDTH - 10}"/>'
        f'<text class="label" x="54" y="15">{amount(most)}</text><text class="label" x="54" y="{zero + 4:.1f}">0</text>'
        f'<polygon points="{area}"/><polyline points="{path}"/>'
        + (f'<circle cx="{places[0][0]}" cy="{places[0][1]:.1f}" r="3"/>' if len(places) == 1 else "")
        + ticks([points[0][0], points[len(points) // 2][0], points[-1][0]], left=60)
    )
    highest = max(points, key=lambda point: point[1])
    description = (
        f"{len(points)} points from {points[0][0]} ({amount(points[0][1])}) to {points[-1][0]} ({amount(points[-1][1])}); "
        f"the highest is {amount(highest[1])} at {highest[0]}."
    )
    return svg(number, 165, title, description, content)


def ticks(labels, left=10):
    first, middle, last = (escape(label) for label in labels)
    return (
        f'<text x="{left}" y="158">{first}</text><text class="middle" x="{(left + WIDTH - 10) / 2}" y="158">{middle}</text>'
        f'<text class="label" x="{WIDTH - 10}" y="158">{last}</text>'
    )


def cut(text):
    return text if len(text) <= LABEL_CHARS else text[: LABEL_CHARS - 1] + "…"


def amount(number):
    """A number for people: 12, 1,234, 12.35, 1.2 million."""
    size = abs(number)
    if size >= 1e15 or 0 < size < 1e-4:
        return f"{number:.3g}"
    for power, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if size >= power:
            return f"{number / power:,.2f}".rstrip("0").rstrip(".") + f" {name}"
    if number == int(number):
        return f"{int(number):,}"
    digits = 0 if size >= 1000 else 2 if size >= 1 else 4
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text
