"""SentencePiece's model files and precompiled charsmaps, as far as the golden scripts read and write them."""
import struct


def encode_varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A field of a protocol buffer: int as varint, float as fixed32, bytes and str with their length."""
    if isinstance(value, int):
        return encode_varint(number << 3) + encode_varint(value)
    if isinstance(value, float):
        return encode_varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return encode_varint(number << 3 | 2) + encode_varint(len(value)) + value


def write_model(pieces, charsmap):
    """pieces: (text, score, type), type 1 normal, 2 unknown, 3 control, 4 user defined."""
    out = b"".join(field(1, field(1, text) + field(2, float(score)) + field(3, kind)) for text, score, kind in pieces)
    return out + field(2, field(3, 1) + field(40, 0)) + field(3, field(1, "own") + field(2, charsmap))


def read_fields(message):
    """(number, value) of each field; lengths as bytes, fixed32 as float."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
        elif kind == 5:
            yield key >> 3, struct.unpack("<f", message[at : at + 4])[0]
            at += 4
        elif kind == 1:
            yield key >> 3, message[at : at + 8]
            at += 8
        else:
            size = varint()
            yield key >> 3, message[at : at + size]
            at += size


def read_model(message):
    """{"pieces": [(text, score, type)], "unk_id", "charsmap"}."""
    model = {"pieces": [], "unk_id": 0, "charsmap": b""}
    for number, value in read_fields(message):
        if number == 1:
            piece = {1: b"", 2: 0.0, 3: 1, **dict(read_fields(value))}
            model["pieces"].append((piece[1].decode(), piece[2], piece[3]))
        elif number == 2:
            model["unk_id"] = dict(read_fields(value)).get(40, 0)
        elif number == 3:
            model["charsmap"] = dict(read_fields(value)).get(2, b"")
    return model


def build_charsmap(mapping):
    """A precompiled charsmap of {text: text}: a double-array trie in the layout of darts-clone, then the texts."""
    texts, at = b"", {}
    for value in sorted(set(mapping.values())):
        at[value] = len(texts)
        texts += value.encode() + b"\0"
    trie = {}
    for key, value in mapping.items():
        node = trie
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[-1] = at[value]
    units, taken = {}, {0}
    pending = [(0, 0, trie)]
    while pending:
        index, label, node = pending.pop()
        labels = [0 if byte == -1 else byte for byte in node]
        base = 1
        while any(base ^ byte in taken for byte in labels):
            base += 1
        taken.update(base ^ byte for byte in labels)
        units[index] = (index ^ base) << 10 | (256 if -1 in node else 0) | label
        for byte, child in node.items():
            if byte == -1:
                units[base] = child | 1 << 31
            else:
                pending.append((base ^ byte, byte, child))
    # A whole block of 256 at the end: a lookup of any byte stays inside of the array.
    size = (max(units) | 255) + 1
    return struct.pack("<I", 4 * size) + struct.pack("<%dI" % size, *(units.get(i, 0) for i in range(size))) + texts
