"""read_checkpoint.py FOLDER prints a stretto checkpoint: name, type, shape and first values of each tensor.
load(FOLDER) gives {name: (dtype, shape, little-endian bytes)}, as numpy.frombuffer takes them."""
import importlib.util, json, math, pathlib, struct, sys
xxhash = importlib.import_module("xxhash") if importlib.util.find_spec("xxhash") else None
FORMATS = dict(F64="d", F32="f", F16="e", BF16="H", I64="q", I32="i", I16="h", I8="b", U8="B", BOOL="?")  # BF16: bits

def check(data, digits, what):
    if xxhash and xxhash.xxh3_64_hexdigest(data) != digits:
        raise ValueError(f"{what} is damaged")

def place(piece, shape, width, data, tensor):  # row-major elements [begin, end) of a box inside the tensor
    offset, extent, (begin, end) = piece["offset"], piece["extent"], piece["flat"]
    if extent == shape:
        tensor[begin * width:end * width] = data
    for flat in range(begin, end if extent != shape else begin):
        index, rest, stride = 0, flat, 1
        for axis in reversed(range(len(shape))):
            rest, inside = divmod(rest, extent[axis])
            index, stride = index + (offset[axis] + inside) * stride, stride * shape[axis]
        tensor[index * width:(index + 1) * width] = data[(flat - begin) * width:(flat - begin + 1) * width]

def load(folder):
    text = (pathlib.Path(folder) / "manifest.json").read_bytes()
    manifest, tensors = json.loads(text), {}
    assert manifest["format_version"] == 1, "this reader is for format 1"
    check(text[:text.rindex(b',"checksum":')], manifest["checksum"], "manifest.json")
    files = {name: (pathlib.Path(folder) / name).read_bytes() for name in manifest["files"]}
    for name, entry in manifest["tensors"].items():
        width = struct.calcsize("<" + FORMATS[entry["dtype"]])
        tensors[name] = (entry["dtype"], entry["shape"], bytearray(width * math.prod(entry["shape"])))
        for piece in entry["pieces"]:
            data = files[piece["file"]][slice(*piece["bytes"])]
            check(data, piece["xxh3"], f"{piece['file']}: tensor {name}")
            place(piece, entry["shape"], width, data, tensors[name][2])
    return tensors

if __name__ == "__main__":
    for name, (dtype, shape, data) in load(sys.argv[1]).items():
        print(name, dtype, shape, *struct.unpack_from(f"<{min(math.prod(shape), 12)}{FORMATS[dtype]}", data))
    print("every piece is whole" if xxhash else "no module xxhash: checksums were not checked", file=sys.stderr)
