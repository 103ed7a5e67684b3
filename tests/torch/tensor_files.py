"""Reads and writes safetensors with numpy alone, so that the tests need no package for it."""

import json
import struct

import numpy

_DTYPES = {"F32": numpy.dtype("<f4"), "I64": numpy.dtype("<i8")}


def write_safetensors(path, tensors):
    """Writes {name: array of float32 or int64}."""
    words = {dtype: word for word, dtype in _DTYPES.items()}
    header, offset = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": words[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + tensor.nbytes]}
        offset += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.tobytes())


def read_safetensors(path):
    """Returns {name: array}."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(data[slice(*entry["data_offsets"])], _DTYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}
