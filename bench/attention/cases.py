"""What is measured: shapes in groups, each with the targets it is held to. Data only, no Torch."""

import dataclasses
import math
import pathlib

DIRECTIONS = ("forward", "forward_backward")
FLOPS_PER_PAIR = {"forward": 4, "forward_backward": 14}  # times D: two products, then five more
ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclasses.dataclass(frozen=True)
class Case:
    """One attention call. S = T unless keys says otherwise; query i owns key S - T + i."""

    group: str
    tokens: int
    head_dim: int = 64
    batch: int = 1
    heads: int = 12
    key_heads: int = 0  # 0: as many as heads
    keys: int = 0  # 0: as many as tokens
    causal: bool = True
    dtype: str = "float32"
    layout: str = "[B,H,T,D]"  # or [B,T,H,D], or qkv: slices of one [B,T,3,H,D]
    window: int | None = None
    documents: tuple[int, ...] = ()  # lengths of packed documents
    directions: tuple[str, ...] = DIRECTIONS
    compiled: bool = False  # SDPA and the two lines under torch.compile as well
    against: "tuple[Case, ...] | str" = ()  # ours on these shapes; "read": reading keys and values
    targets: tuple[tuple[str, str, float], ...] = ()  # (direction, metric, value)
    note: str = ""
    quick: bool = False  # part of --quick
    budget_s: float = 3.0

    @property
    def source_heads(self):
        return self.key_heads or self.heads

    @property
    def sources(self):
        return self.keys or self.tokens

    @property
    def label(self):
        heads = f"H={self.heads}" + (f" over {self.key_heads}" if self.key_heads else "")
        parts = [f"B={self.batch}" if self.batch > 1 else "", heads, f"T={self.tokens}"]
        parts += [f"S={self.keys}" if self.keys else "", f"D={self.head_dim}"]
        parts += [self.dtype if self.dtype != "float32" else ""]
        parts += [self.layout if self.layout != "[B,H,T,D]" else ""]
        parts += [f"window {self.window}" if self.window else "", self.note]
        return " ".join(part for part in parts if part)

    def pairs(self):
        """Visible (query, key) pairs of one head."""
        if self.documents:
            return sum(
                length * (length + 1) // 2 if self.causal else length * length
                for length in self.documents
            )
        total = 0
        for own in range(self.sources - self.tokens, self.sources):
            last = own + 1 if self.causal else self.sources
            first = 0
            if self.window:
                first, last = max(0, own - self.window + 1), min(last, own + self.window)
            total += last - first
        return total

    def flops(self, direction):
        pairs = self.batch * self.heads * self.pairs()
        return FLOPS_PER_PAIR[direction] * pairs * self.head_dim

    def cache_bytes(self):
        """Keys and values, read once."""
        elements = 2 * self.batch * self.source_heads * self.sources * self.head_dim
        return elements * ITEM_BYTES[self.dtype]

    def work(self, direction):
        """What the reference in `against` is scaled by: bytes if it reads, else FLOPs."""
        return self.cache_bytes() if self.against == "read" else self.flops(direction)

    def reference_work(self, direction):
        if self.against == "read":
            return self.cache_bytes()
        return sum(case.flops(direction) for case in self.against)


@dataclasses.dataclass(frozen=True)
class Group:
    title: str
    against: str = ""  # heads the column that compares with Case.against


GROUPS = {
    "a": Group("Causal, float32, the lengths of the table"),
    "b": Group("Odd lengths, other B and H, heads within tokens in memory"),
    "c": Group("Not causal"),
    "d": Group("Grouped heads", "plain heads"),
    "e": Group("Window", "no window"),
    "f": Group("Packed documents", "documents apart"),
    "g": Group("Head dimensions", "D = 64"),
    "h": Group("bfloat16 and float16"),
    "i": Group("Decoding: few queries, many keys", "a plain read"),
    "j": Group("Memory of forward + backward"),
}

# Length: how many times faster than SDPA at D = 64, at D = 128, and share of sgemm.
TARGETS = {
    128: (2.2, 2.0, 0.65),
    256: (2.2, 2.0, 0.65),
    512: (2.4, 2.1, 0.85),
    1024: (1.75, 1.6, 0.90),
    2048: (1.5, 1.4, 0.93),
    8192: (1.33, 1.15, 0.93),
}


def interpolated(tokens, column):
    """A column of TARGETS between its lengths, along log T; flat beyond them."""
    lengths = sorted(TARGETS)
    tokens = min(max(tokens, lengths[0]), lengths[-1])
    above = next(length for length in lengths if length >= tokens)
    below = max(length for length in lengths if length <= tokens)
    low, high = TARGETS[below][column], TARGETS[above][column]
    share = 0 if above == below else math.log(tokens / below) / math.log(above / below)
    return round(low + share * (high - low), 2)


def causal_targets(tokens, head_dim, sizes_like_the_table=True):
    """Ratio to SDPA, share of sgemm, cost of XSA in percent; for each direction."""
    column = 1 if head_dim > 64 else 0
    found = [("sdpa", interpolated(tokens, column)), ("of_sgemm", interpolated(tokens, 2))]
    found.append(("cost_percent", 2.0 if tokens >= 512 else 4.0))
    return tuple((direction, *target) for direction in DIRECTIONS for target in found)


def both(metric, value):
    return tuple((direction, metric, value) for direction in DIRECTIONS)


def table_cases():
    for head_dim in (64, 128):
        for tokens in TARGETS:
            yield Case(
                "a",
                tokens,
                head_dim,
                heads=2 if tokens == 8192 else 12,
                compiled=True,
                targets=causal_targets(tokens, head_dim),
                quick=tokens in (128, 512, 2048) and head_dim == 64,
                budget_s=8 if tokens == 8192 else 5,
            )


def other_cases():
    shapes = [{"tokens": tokens, "quick": tokens == 333} for tokens in (100, 333, 1000, 1537)]
    shapes += [
        {"batch": 4, "heads": 8, "tokens": 512, "quick": True},
        {"batch": 8, "heads": 6, "tokens": 256},
        {"batch": 1, "heads": 1, "tokens": 2048},
        {"batch": 2, "heads": 3, "tokens": 777},
        {"layout": "[B,T,H,D]", "tokens": 1024},
        {"layout": "[B,T,H,D]", "tokens": 1024, "heads": 16, "quick": True},
        {"layout": "qkv", "tokens": 1024},
    ]
    for shape in shapes:
        yield Case("b", targets=causal_targets(shape["tokens"], 64), **shape)


def full_cases():
    for tokens in (128, 256, 512, 1024, 2048, 4096):
        targets = both("sdpa", 1.0) + (both("of_sgemm", 0.9) if tokens >= 1024 else ())
        yield Case("c", tokens, causal=False, targets=targets, quick=tokens in (256, 1024))


def grouped_cases():
    for tokens, key_heads in ((1024, 4), (1024, 1), (2048, 4)):
        yield Case(
            "d",
            tokens,
            key_heads=key_heads,
            against=(Case("d", tokens),),
            targets=both("against", 1.0),
            quick=tokens == 1024,
        )


def window_cases():
    yield Case(
        "e",
        8192,
        heads=2,
        window=256,
        against=(Case("e", 8192, heads=2),),
        targets=both("against", round(1 / 1.5, 3)),
        budget_s=8,
    )


def document_cases():
    for documents in ((37, 512, 130, 255, 64, 601, 322, 127), (512,) * 4):
        equal = len(set(documents)) == 1
        apart = [Case("f", length) for length in documents]
        yield Case(
            "f",
            sum(documents),
            documents=documents,
            note="4 documents of 512" if equal else "8 documents of 37 to 601",
            against=(Case("f", 512, batch=4),) if equal else tuple(apart),
            targets=both("against", 1.0),
            quick=equal,
        )


def dimension_cases():
    for head_dim in (32, 80, 96, 256):
        yield Case(
            "g",
            1024,
            head_dim,
            against=(Case("g", 1024),),
            targets=both("against", 0.8),
            quick=head_dim == 80,
        )


def half_cases():
    wanted = (("forward", "sdpa", 1.3), ("forward_backward", "sdpa", 8.0))
    for dtype in ("bfloat16", "float16"):
        for tokens in (512, 1024, 2048):
            yield Case(
                "h",
                tokens,
                dtype=dtype,
                targets=wanted if tokens == 2048 else (),
                quick=tokens == 512,
            )


def last_level_cache_bytes():
    """Of the machine; 32 MiB where it does not say."""
    found = 32 << 20
    for path in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        found = max(found, int(path.read_text().strip().removesuffix("K")) << 10)
    return found


def decode_cases():
    def case(tokens, keys, dtype="float32", key_heads=0, **more):
        return Case(
            "i",
            tokens,
            keys=keys,
            dtype=dtype,
            key_heads=key_heads,
            causal=tokens > 1,
            directions=("forward",),
            against="read",
            **{"budget_s": 2.0, **more},
        )

    lengths = (1024, 4096, 32768)
    for tokens in (1, 4, 8):
        for keys in lengths:
            yield case(tokens, keys, quick=keys == 4096 and tokens != 4)
    for keys in lengths:
        yield case(1, keys, dtype="bfloat16", quick=keys == 4096)
    for keys in lengths:
        yield case(1, keys, key_heads=4, quick=keys == 4096)
    for dtype in ("float32", "bfloat16"):
        bytes_a_key = 2 * 12 * 64 * ITEM_BYTES[dtype]
        keys = math.ceil(4 * last_level_cache_bytes() / bytes_a_key / 1024) * 1024
        yield case(
            1,
            keys,
            dtype,
            note="(4 times the last-level cache)",
            targets=(("forward", "against", 0.8),),
            budget_s=4,
        )


def memory_cases():
    for dtype in ("float32", "bfloat16"):
        yield Case("j", 4096, dtype=dtype, quick=dtype == "float32")
        yield Case("j", 8192, heads=2, dtype=dtype)


def cases_of(groups, quick):
    """The cases of the named groups but j, which is measured in processes of its own."""
    makers = {
        "a": table_cases,
        "b": other_cases,
        "c": full_cases,
        "d": grouped_cases,
        "e": window_cases,
        "f": document_cases,
        "g": dimension_cases,
        "h": half_cases,
        "i": decode_cases,
    }
    found = [case for group in groups if group != "j" for case in makers[group]()]
    return [case for case in found if case.quick or not quick]
