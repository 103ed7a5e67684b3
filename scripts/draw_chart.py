#!/usr/bin/python3
"""Draws the images of the documents as SVG, with nothing but Python itself.

usage: draw_chart.py loss <metrics.csv> <out.svg>          the loss of a run over its steps
       draw_chart.py layers <bench.json> <out.svg>         the longest steps of `orthant bench step --layers --json`
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


def main(arguments):
    if len(arguments) != 3 or arguments[0] not in ("loss", "layers"):
        sys.exit(__doc__)
    with open(arguments[1], newline="") as file:
        drawing = draw_loss(list(csv.DictReader(file))) if arguments[0] == "loss" else draw_layers(json.load(file))
    with open(arguments[2], "w") as file:
        file.write(drawing)


if __name__ == "__main__":
    main(sys.argv[1:])
