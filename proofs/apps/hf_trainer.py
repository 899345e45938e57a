"""Hugging Face's Trainer on random data: a small BERT of its own, nothing is downloaded."""

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
torch.set_num_threads(1)
config = BertConfig(
    vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=2
)
data = [{"input_ids": torch.randint(0, 100, (16,)), "labels": torch.tensor(number % 2)} for number in range(64)]
arguments = TrainingArguments(
    "out",
    num_train_epochs=1,
    per_device_train_batch_size=8,
    report_to=[],
    disable_tqdm=True,
    save_strategy="no",
    use_cpu=True,
)
trainer = Trainer(BertForSequenceClassification(config), arguments, train_dataset=data)
print(round(trainer.train().training_loss, 4))
