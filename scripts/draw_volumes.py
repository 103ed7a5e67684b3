#!/usr/bin/python3
"""Draws what `orthant data make` made, with nothing but numpy and h5py.

usage: draw_volumes.py universe <file.h5> <out.png>          a slice of every redshift
       draw_volumes.py organs <file.h5> <out.png>            a slice, and the same with its classes in colour
       draw_volumes.py spectrum <directory> <out.svg>        power over linear theory, the mean of all universes
"""

import pathlib
import struct
import sys
import zlib

import h5py
import numpy as np

from draw_chart import BOTTOM, GRID, INK, LEFT, RIGHT, TOP, WIDTH, page, polyline, text
from linear_theory import measured_power

# Dark blue over red to yellow, for densities; one colour per class, for organs.
DENSITY = np.array([(8, 8, 30), (52, 20, 92), (150, 40, 100), (230, 95, 60), (252, 190, 70), (255, 255, 225)], float)
CLASSES = np.array([(0, 0, 0), (64, 160, 255), (255, 90, 60), (90, 220, 120), (240, 200, 40), (200, 90, 230),
                    (90, 230, 230), (255, 255, 255)], float)
LINES = ("#0969da", "#1a7f37", "#bc4c00", "#8250df")


def write_png(path, pixels):
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in np.clip(pixels, 0, 255).astype(np.uint8))

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    pathlib.Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + data)


def coloured(shares, colours):
    place = np.clip(shares, 0, 1) * (len(colours) - 1)
    low = np.minimum(place.astype(int), len(colours) - 2)
    part = (place - low)[..., None]
    return colours[low] * (1 - part) + colours[low + 1] * part


def enlarged(pixels, times):
    return np.kron(pixels, np.ones((times, times, 1)))


def side_by_side(pictures, gap=8):
    space = np.full((pictures[0].shape[0], gap, 3), 255.0)
    return np.concatenate([part for picture in pictures for part in (picture, space)][:-1], axis=1)


def draw_universe(path):
    """The mean of a slab of 1/16 of the depth, as log(1 + density)."""
    with h5py.File(path) as file:
        volume, scale = file["full"], file["full"].attrs.get("scale", 1)
        slab = volume[: max(1, volume.shape[0] // 16)].mean(axis=0) / scale
    shares = np.log1p(slab) / np.log1p(np.quantile(slab, 0.999))
    shares = np.round(shares * 40) / 40  # fewer colours make a smaller file
    times = max(1, 256 // slab.shape[0])
    return side_by_side([enlarged(coloured(shares[..., i], DENSITY), times) for i in range(shares.shape[-1])])


def draw_organs(path):
    with h5py.File(path) as file:
        middle = file["volume"].shape[0] // 2
        scale = file["volume"].attrs.get("scale", 1)
        volume, labels = file["volume"][middle, ..., 0] / scale, file["segmentation"][middle, ..., 0]
    grey = np.repeat(np.clip(volume, 0, 1)[..., None] * 255, 3, axis=-1)
    tinted = np.where(labels[..., None] > 0, 0.5 * grey + 0.5 * CLASSES[labels], grey)
    times = max(1, 320 // volume.shape[0])
    return side_by_side([enlarged(grey, times), enlarged(tinted, times)])


def draw_spectrum(directory, height=360):
    files = sorted(pathlib.Path(directory).glob("universe_*.h5"))
    with h5py.File(files[0]) as file:
        redshifts, size = list(file.attrs["redshifts"]), file["full"].shape[0]
    edges = np.unique(np.concatenate([[1, 2.5, 4], np.geomspace(5.5, size / 2.2, 12)]))
    across, down = WIDTH - LEFT - RIGHT, height - TOP - BOTTOM
    curves = [np.mean([measured_power(file, channel, edges) for file in files], axis=0) for channel in range(len(redshifts))]
    low, high = np.log10(curves[0][0, 0]) - 0.05, np.log10(curves[0][-1, 0]) + 0.05

    def place(k, ratio):
        return LEFT + across * (np.log10(k) - low) / (high - low), TOP + down * (1 - np.clip(ratio - 0.5, 0, 1))

    body = [text(WIDTH / 2, 22, f"measured power over linear theory, mean of {len(files)} universes", size=15)]
    band = [place(10**low, 1.05)[1], place(10**low, 0.95)[1]]
    body.append(f'<rect x="{LEFT}" y="{band[0]:.1f}" width="{across}" height="{band[1] - band[0]:.1f}" fill="#eef4fb"/>')
    for ratio in np.arange(0.5, 1.51, 0.1):
        y = place(10**low, ratio)[1]
        body.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>')
        body.append(text(LEFT - 8, y + 4, f"{ratio:.1f}", "end"))
    for k in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2):
        if low <= np.log10(k) <= high:
            body.append(text(place(k, 1)[0], height - 24, k))
    body.append(text(LEFT + across / 2, height - 6, "k in h/Mpc; the band is 5 %"))
    for i, curve in enumerate(curves):
        body.append(polyline([place(k, ratio) for k, _, ratio, _ in curve], LINES[i % len(LINES)], 2))
        body.append(text(LEFT + 60 + 90 * i, TOP + 16, f"z = {redshifts[i]:g}").replace(INK, LINES[i % len(LINES)]))
    return page(height, body)


def main(arguments):
    drawings = {"universe": draw_universe, "organs": draw_organs, "spectrum": draw_spectrum}
    if len(arguments) != 3 or arguments[0] not in drawings:
        sys.exit(__doc__)
    drawing = drawings[arguments[0]](arguments[1])
    if isinstance(drawing, str):
        pathlib.Path(arguments[2]).write_text(drawing)
    else:
        write_png(arguments[2], drawing)


if __name__ == "__main__":
    main(sys.argv[1:])
