"""A training by transformers' Trainer under a profiler that the script takes for torch.profiler; a callback reports the
steps.

python transformers_fit.py FOLDER
"""

import sys
import warnings

import vestige

vestige.install()

import torch
from torch.profiler import profile, schedule, tensorboard_trace_handler
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

STEPS = 5


class Steps(TrainerCallback):
    def __init__(self, prof):
        self.prof = prof

    def on_step_end(self, *args, **kwargs):
        self.prof.step()


def main(folder):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    small = BertConfig(
        vocab_size=16,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=8,
    )
    data = [{"input_ids": torch.arange(4), "labels": torch.tensor(0)} for _ in range(2 * STEPS)]
    options = TrainingArguments(
        folder,
        max_steps=STEPS,
        per_device_train_batch_size=2,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=tensorboard_trace_handler(folder),
        record_shapes=True,
    ) as prof:
        model = BertForSequenceClassification(small)
        Trainer(model, options, train_dataset=data, callbacks=[Steps(prof)]).train()
    assert isinstance(prof, vestige.profile)


if __name__ == "__main__":
    main(sys.argv[1])
