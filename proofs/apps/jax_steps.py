"""A training loop of JAX: grad, jit and vmap."""

import jax
import jax.numpy as jnp


@jax.jit
def step(weights, x, y):
    gradient = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(weights)
    return weights - 0.1 * gradient


x = jax.random.normal(jax.random.key(0), (64, 4))
y = x @ jnp.arange(4.0)
weights = jnp.zeros(4)
for _ in range(100):
    weights = step(weights, x, y)
print(jnp.round(weights, 3), jax.vmap(lambda row: row.sum())(x).shape)
