"""The ways to compute a case: PyTorch's, with and without the paper's two lines, and ours.

  sdpa        scaled_dot_product_attention: standard attention
  sdpa_xsa    the same and the paper's two lines in eager PyTorch: what our operator replaces
  compiled    sdpa_xsa under torch.compile
  ours_plain  xsa::attention with strength 0: standard attention
  ours_xsa    xsa::attention with strength 1
"""

import torch

VARIANTS = ("sdpa", "sdpa_xsa", "compiled", "ours_plain", "ours_xsa")
RANDOM_ELEMENTS = 1 << 24  # a larger tensor repeats itself: drawing all of it would take seconds


def random(size, dtype, generator):
    count = 1
    for extent in size:
        count *= extent
    block = torch.randn(min(count, RANDOM_ELEMENTS), generator=generator).to(dtype)
    return block.repeat(-(-count // block.numel()))[:count].view(size)


def two_lines(y, w):
    """w [B, K, T, D]: the values of the queries' own keys."""
    unit = torch.nn.functional.normalize(w, dim=-1)
    if w.size(1) != y.size(1):  # grouped heads: nothing expanded
        grouped = y.unflatten(1, (w.size(1), -1))
        unit = unit.unsqueeze(2)
        return (grouped - (grouped * unit).sum(-1, keepdim=True) * unit).flatten(1, 2)
    return y - (y * unit).sum(-1, keepdim=True) * unit


class Call:
    """A case with tensors: calls of every variant, forward or forward and backward."""

    def __init__(self, case, seed=0):
        self.case = case
        self.generator = torch.Generator().manual_seed(seed)
        self.q, self.k, self.v = self.inputs()
        query_size = (case.batch, case.heads, case.tokens, case.head_dim)
        self.dz = self.laid_out(query_size)
        self.mask = self.sdpa_mask()
        self.options = {"is_causal": case.causal, "window": case.window}
        if case.documents:
            ends = torch.tensor((0, *case.documents)).cumsum(0)
            self.options["cu_seqlens"] = ends.to(torch.int32)
        self.variants = {
            "sdpa": self.sdpa,
            "sdpa_xsa": self.sdpa_xsa,
            "ours_plain": lambda q, k, v: self.ours(q, k, v, strength=0.0),
            "ours_xsa": self.ours,
        }

    # ---- inputs

    def laid_out(self, size):
        dtype = getattr(torch, self.case.dtype)
        if self.case.layout == "[B,H,T,D]":
            return random(size, dtype, self.generator)
        batch, heads, tokens, dim = size
        return random((batch, tokens, heads, dim), dtype, self.generator).transpose(1, 2)

    def inputs(self):
        case = self.case
        if case.layout == "qkv":
            size = (case.batch, case.tokens, 3, case.heads, case.head_dim)
            memory = random(size, getattr(torch, case.dtype), self.generator)
            tensors = memory.permute(2, 0, 3, 1, 4).unbind(0)
        else:
            key_size = (case.batch, case.source_heads, case.sources, case.head_dim)
            query_size = (case.batch, case.heads, case.tokens, case.head_dim)
            tensors = [self.laid_out(size) for size in (query_size, key_size, key_size)]
        return [tensor.detach().requires_grad_() for tensor in tensors]

    def sdpa_mask(self):
        """What SDPA cannot be told in another way; True where a query sees a key."""
        case = self.case
        if not (case.window or case.documents or (case.causal and case.keys)):
            return None
        own = torch.arange(case.sources - case.tokens, case.sources)[:, None]
        key = torch.arange(case.sources)[None]
        seen = key <= own if case.causal else torch.ones(case.tokens, case.sources).bool()
        if case.window:
            seen &= (key - own).abs() < case.window
        if case.documents:
            lengths = torch.tensor(case.documents)
            document = torch.arange(len(lengths)).repeat_interleave(lengths)
            seen &= document[:, None] == document[None]
        return seen

    # ---- variants: functions of q, k, v

    def sdpa(self, q, k, v):
        case = self.case
        return torch.nn.functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=self.mask,
            is_causal=case.causal and self.mask is None,
            enable_gqa=case.source_heads != case.heads,
        )

    def sdpa_xsa(self, q, k, v):
        own = v if not self.case.keys else v[:, :, self.case.sources - self.case.tokens :]
        return two_lines(self.sdpa(q, k, v), own)

    def ours(self, q, k, v, strength=1.0):
        return torch.ops.xsa.attention(q, k, v, strength=strength, **self.options)[0]

    def add_compiled(self):
        torch._dynamo.reset()  # else it makes one program for all shapes, which is slower
        self.variants["compiled"] = torch.compile(self.sdpa_xsa, dynamic=False)

    def path(self):
        """"cpu_fused", or "composite: why"."""
        return torch.ops.xsa.attention_backend(self.q, self.k, self.v, **self.options)

    # ---- calls

    def forward(self, name):
        with torch.no_grad():
            return self.variants[name](self.q, self.k, self.v)

    def forward_backward(self, name):
        z = self.variants[name](self.q, self.k, self.v)
        return torch.autograd.grad(z, (self.q, self.k, self.v), self.dz)

    def read(self):
        """Keys and values read once. As floats, whatever they are: additions cost no time then."""
        return [x.detach().view(torch.float32).sum() for x in (self.k, self.v)]

    # ---- the results

    def results(self, name, inputs=None):
        """z and, where the case has a backward, the three gradients."""
        q, k, v = inputs or (self.q, self.k, self.v)
        if "forward_backward" not in self.case.directions:
            with torch.no_grad():
                return [self.variants[name](q, k, v)]
        z = self.variants[name](q, k, v)
        return [z.detach(), *torch.autograd.grad(z, (q, k, v), self.dz.to(q.dtype))]

    def verify(self):
        """Ours and the compiled variant against eager PyTorch: the largest difference, relative to
        the largest value. Raises AssertionError. float32: 1e-4. Half precision: twice the error
        that eager PyTorch makes in that type, measured against float32, and one rounding."""
        worst = 0.0
        pairs = (("ours_plain", "sdpa"), ("ours_xsa", "sdpa_xsa"), ("compiled", "sdpa_xsa"))
        for ours, theirs in pairs:
            if ours not in self.variants or theirs not in self.variants:
                continue
            found, eager = self.results(ours), self.results(theirs)
            exact, allowed = eager, [1e-4] * len(eager)
            if self.case.dtype != "float32":
                wide = [x.detach().float().requires_grad_() for x in (self.q, self.k, self.v)]
                exact = self.results(theirs, wide)
                rounding = torch.finfo(self.q.dtype).eps
                allowed = [2 * distance(x, y) + rounding for x, y in zip(eager, exact)]
            for what, x, y, limit in zip(("z", "dq", "dk", "dv"), found, exact, allowed):
                difference = distance(x, y)
                assert difference <= limit, (  # not so where it is NaN
                    f"{self.case.label}: {what} of {ours} is {difference:.2e} from {theirs}, "
                    f"relative to its largest value; allowed: {limit:.2e}"
                )
                worst = max(worst, difference)
        return worst


def distance(x, y):
    """The largest difference, relative to the largest value; NaN if anything is."""
    y = y.float()
    return ((x.float() - y).abs().max() / y.abs().max()).item()
