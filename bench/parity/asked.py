"""What lm-evaluation-harness asks a model: its own tasks' requests, in text and in tokens."""

import transformers
from lm_eval.api.model import TemplateLM

from parity import model


class Listener(TemplateLM):
    """A model that keeps what it is asked, and answers by a made-up score of the token ids: the
    golden cases' (a token: -(1 + (id mod 97) / 32); greedy where the sum of the ids is even)."""

    eot_token_id = 50256
    max_length = 1024

    def __init__(self, folder):
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        model.write_tokenizer(folder, self.max_length)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
        self.asked = []

    def tok_encode(self, string, add_special_tokens=None, **_):
        return self.tokenizer.encode(string)

    def _loglikelihood_tokens(self, requests, **_):
        self.asked += requests
        return [
            (-sum(1 + (token % 97) / 32 for token in ids), sum(ids) % 2 == 0)
            for _, _, ids in requests
        ]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        raise NotImplementedError

    def generate_until(self, requests, disable_tqdm=False):
        raise NotImplementedError


def requests_of(listener, task, name):
    """Every request of a loaded task, as `xsa eval --dump-requests` writes it."""
    task.set_config("num_fewshot", 0)
    task.build_all_requests(rank=0, world_size=1)
    listener.asked = []
    listener.loglikelihood(task.instances, disable_tqdm=True)
    for instance, (texts, context_ids, continuation_ids) in zip(
        task.instances, listener.asked, strict=True
    ):
        yield {
            "task": name,
            "index": instance.doc_id,
            "choice": instance.idx,
            "context": texts[0],
            "continuation": texts[1],
            "context_ids": context_ids,
            "continuation_ids": continuation_ids,
        }
