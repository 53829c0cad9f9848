"""torch.compile with irc, for inference and training: python examples/compile_model.py"""

import torch

import irc


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def main():
    torch.manual_seed(0)
    block = Block(32)
    compiled = torch.compile(block, backend="irc", dynamic=True)

    irc.metrics.reset()
    with torch.no_grad():
        for length in (7, 19, 40):
            x = torch.randn(2, length, 32)
            error = (compiled(x) - block(x)).abs().max().item()
            print(f"inference, length {length}: largest difference {error:.1e}")
    print(
        f"{irc.metrics.compiles} program, {irc.metrics.kernels} generated kernels, "
        f"{irc.metrics.aten_calls} ATen calls"
    )

    optimizer = torch.optim.SGD(block.parameters(), lr=0.05)
    x, target = torch.randn(2, 11, 32), torch.randn(2, 11, 32)
    for step in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(compiled(x), target)
        loss.backward()
        optimizer.step()
        print(f"training, step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
