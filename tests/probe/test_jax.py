"""JAX's own attention as a witness, in single and half precision, traced or not."""

import pytest

from mcverify import agree, assert_attention, probe

jax = pytest.importorskip("jax")
jnp = jax.numpy
pytestmark = pytest.mark.slow  # JAX compiles each of its steps for every shape


def attend(q, k, v, **options):
    """JAX has the heads behind the tokens."""
    q, k, v = (jnp.swapaxes(jnp.asarray(x), 1, 2) for x in (q, k, v))
    return jnp.swapaxes(jax.nn.dot_product_attention(q, k, v, **options), 1, 2)


@pytest.mark.parametrize(("function", "dtype"), [
    (attend, jnp.float32), (attend, jnp.float16), (jax.jit(attend), jnp.bfloat16)])
def test_dot_product_attention(dtype, function):
    found = assert_attention(function, scale="1/sqrt(d_k)", causal=False, cap=None, findings=(),
                             key_head=[0, 0, 1, 1], heads=4, kv_heads=2, dtype=dtype)
    assert found.precision == jnp.dtype(dtype).name
    assert found.low <= 0.125 <= found.high
    assert (found.high - found.low) / 2 < 1e-3 * 0.125


def test_faults_have_their_names():
    def causal(q, k, v):
        return attend(q, k, v, is_causal=True, scale=40**-0.5)

    found = probe(causal, declared="1/sqrt(d_k)", dtype=jnp.bfloat16, d_k=192, d_v=192)
    assert (found.formula, found.agrees, found.causal) == ("1/sqrt(40)", False, True)
    assert not agree(attend, causal, dtypes=(jnp.float32, jnp.bfloat16))
    assert agree(attend, jax.jit(attend), dtypes=(jnp.float32, jnp.bfloat16))
