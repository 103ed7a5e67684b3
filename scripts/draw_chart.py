#!/usr/bin/python3
"""Draws the images of the documents as SVG, with nothing but Python itself.

usage: draw_chart.py loss <metrics.csv> <out.svg>          the loss of a run over its steps
       draw_chart.py layers <bench.json> <out.svg>         the longest steps of `orthant bench step --layers --json`
       draw_chart.py fronts <tune.json> <out.svg>          divisions of the longest convolutions, of `orthant tune --json`
       draw_chart.py limits <tune.json>... <out.svg>       what several runs of it came to
"""

import csv
import html
import json
import math
import sys

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760, 70, 20, 40, 45
INK, GRID, LINE, FAINT = "#24292f", "#d0d7de", "#0969da", "#a8cbf0"


def text(x, y, words, anchor="middle", size=13):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{INK}">{html.escape(str(words))}</text>'


def page(height, body):
    style = 'font-family="system-ui, sans-serif"'
    box = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" {style}>'
    return "\n".join([start, box, *body, "</svg>", ""])


def polyline(points, colour, width):
    where = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{where}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>'


def averaged(values, reach):
    return [sum(part) / len(part) for i in range(len(values)) for part in [values[max(0, i - reach) : i + reach + 1]]]


def draw_loss(rows, height=320):
    steps = [float(row["step"]) for row in rows]
    losses = [float(row["loss"]) for row in rows]
    low, high = (math.floor(math.log10(min(losses)) * 2) / 2, math.ceil(math.log10(max(losses)) * 2) / 2)
    across, down = WIDTH - LEFT - RIGHT, height - TOP - BOTTOM

    def place(step, loss):
        share = (math.log10(loss) - low) / max(high - low, 1e-9)
        return LEFT + across * (step - steps[0]) / max(steps[-1] - steps[0], 1), TOP + down * (1 - share)

    body = [text(WIDTH / 2, 22, "loss over training steps (pale: each step, dark: running mean)", size=15)]
    for half in range(round(2 * low), round(2 * high) + 1):
        _, y = place(steps[0], 10 ** (half / 2))
        body.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>')
        body.append(text(LEFT - 8, y + 4, f"{10 ** (half / 2):.2g}", "end"))
    for tick in range(6):
        step = steps[0] + (steps[-1] - steps[0]) * tick / 5
        body.append(text(place(step, losses[0])[0], height - 24, round(step)))
    body.append(text(LEFT + across / 2, height - 6, "step"))
    body.append(polyline([place(*p) for p in zip(steps, losses)], FAINT, 1.2))
    smooth = averaged(losses, max(1, len(losses) // 40))
    body.append(polyline([place(*p) for p in zip(steps, smooth)], LINE, 2.2))
    return page(height, body)


def draw_layers(bench, most=16):
    layers = sorted(bench["layers"], key=lambda layer: -layer["seconds"])
    bars = [(layer["name"], layer["implementation"], 1e3 * layer["seconds"]) for layer in layers[:most]]
    bars.append((f"{len(layers) - len(bars)} other steps", "", 1e3 * sum(layer["seconds"] for layer in layers[most:])))
    left, row = 190, 22
    title = f"{bench['network']}: milliseconds per step of the schedule, {1e3 * bench['seconds_best']:.0f} ms in all"
    body = [text(WIDTH / 2, 22, title, size=15)]
    for i, (name, implementation, value) in enumerate(bars):
        y, length = TOP + row * i, (WIDTH - left - 250) * value / max(bar[2] for bar in bars)
        body.append(text(left - 8, y + 14, name, "end", 12))
        body.append(f'<rect x="{left}" y="{y + 3}" width="{length:.1f}" height="{row - 7}" fill="{LINE}"/>')
        body.append(text(left + length + 6, y + 14, f"{value:.1f}  {implementation}", "start", 12))
    return page(TOP + row * len(bars) + 15, body)


def draw_curves(title, across, down, curves, height=380):
    """Curves of (mebibytes, milliseconds) by name: milliseconds from 0 on, mebibytes in powers of two."""
    colours = ("#0969da", "#cf222e", "#1a7f37", "#8250df", "#bf8700", "#57606a")
    points = [point for curve in curves.values() for point in curve]
    low, high = (rounding(math.log2(point[0])) for rounding, point in ((math.floor, min(points)), (math.ceil, max(points))))
    most = max(point[1] for point in points) * 1.05
    right, bottom = WIDTH - RIGHT - 170, height - BOTTOM

    def place(size, time):
        return LEFT + (right - LEFT) * (math.log2(size) - low) / max(high - low, 1), bottom - (bottom - TOP) * time / most

    body = [text(WIDTH / 2, 22, title, size=15)]
    for power in range(low, high + 1):
        x, _ = place(2**power, 0)
        body.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}" stroke="{GRID}"/>')
        body.append(text(x, bottom + 18, f"{2**power:g}", size=11))
    unit = 10 ** math.floor(math.log10(most))
    unit = unit if most / unit >= 3 else unit / 4
    for i in range(int(most / unit) + 1):
        _, y = place(2**low, i * unit)
        body.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>')
        body.append(text(LEFT - 8, y + 4, f"{i * unit:g}", "end"))
    body.append(text((LEFT + right) / 2, height - 8, across))
    body.append(text(LEFT, TOP - 6, down, "start", 11))
    for (name, curve), colour in zip(curves.items(), colours):
        corners = [corner for a, b in zip(curve, curve[1:]) for corner in (a, (b[0], a[1]))] + [curve[-1]]
        body.append(polyline([place(*corner) for corner in corners], colour, 2))
        body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in (place(*point) for point in curve)]
        y = TOP + 20 * (1 + list(curves).index(name))
        body.append(f'<rect x="{right + 14}" y="{y - 9}" width="12" height="12" fill="{colour}"/>')
        body.append(text(right + 32, y + 1, name, "start", 11))
    return page(height, body)


def draw_fronts(tuned, most=6):
    """One dot for each division that no other one beats in time and workspace."""
    longest = sorted(tuned["layers"], key=lambda layer: -layer["front"][0]["seconds"])[:most]
    curves = {layer["name"]: [(max(one["workspace_bytes"], 1) / 2**20, 1e3 * one["seconds"]) for one in layer["front"]] for layer in longest}
    title = f"{tuned['network']}, mini-batch {tuned['mini_batch']}: time of a convolution against its workspace"
    return draw_curves(title, "MiB of workspace", "ms", curves)


def draw_limits(runs):
    """By kind of limit and policy: the time of all convolutions against what their workspaces take together."""
    names = {"workspace": "each its limit", "total": "one limit for all", "memory": "what tensors leave free"}
    curves = {}
    for run in sorted(runs, key=lambda run: run["total_workspace_bytes"]):
        name = names[run["limit"]] + (", undivided" if run["policy"] == "undivided" else "")
        curves.setdefault(name, []).append((run["total_workspace_bytes"] / 2**20, 1e3 * run["tuned_seconds"]))
    title = f"{runs[0]['network']}, mini-batch {runs[0]['mini_batch']}: time of all convolutions of a step"
    return draw_curves(title, "MiB of all workspaces together", "ms", curves)


def read_json(path):
    with open(path) as file:
        return json.load(file)


def drawing_of(kind, paths):
    if kind == "loss" and len(paths) == 1:
        with open(paths[0], newline="") as file:
            return draw_loss(list(csv.DictReader(file)))
    if kind == "layers" and len(paths) == 1:
        return draw_layers(read_json(paths[0]))
    if kind == "fronts" and len(paths) == 1:
        return draw_fronts(read_json(paths[0]))
    if kind == "limits" and paths:
        return draw_limits([read_json(path) for path in paths])
    sys.exit(__doc__)


def main(arguments):
    if len(arguments) < 3:
        sys.exit(__doc__)
    drawing = drawing_of(arguments[0], arguments[1:-1])
    with open(arguments[-1], "w") as file:
        file.write(drawing)


if __name__ == "__main__":
    main(sys.argv[1:])
