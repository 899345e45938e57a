import torch

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(1024, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    optimizer.zero_grad()
    loss = model(torch.randn(512, 1024)).square().mean()
    loss.backward()
    optimizer.step()
print(round(loss.item(), 3))
