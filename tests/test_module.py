"""Module: Variables are found wherever an object keeps them, once, under a name."""

import copy
import pickle

import pytest

import tinygrad_cg as tf


class Dense(tf.Module):
    def __init__(self, inputs, outputs, name=None):
        super().__init__(name)
        self.kernel = tf.Variable(tf.random.normal((inputs, outputs)), name="kernel")
        self.bias = tf.Variable(tf.zeros(outputs), name="bias")

    def __call__(self, x):
        return x @ self.kernel + self.bias


class Network(tf.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Dense(2, 3), Dense(3, 1)]
        self.scales = {"b": tf.Variable(1.0), "a": (tf.Variable(2.0), "text")}
        self.count = tf.Variable(0, trainable=False)
        self.again = self.layers[0]
        self.itself = self
        self.numbers = [1, 2.0, None]
        self.numbers.append(self.numbers)

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x * self.scales["b"]


def test_variables_are_found_once():
    network = Network()
    assert len(network.variables) == 7
    assert len({id(variable) for variable in network.variables}) == 7
    assert len(network.trainable_variables) == 6
    assert network.non_trainable_variables[0] is network.count
    assert set(network.submodules) == set(network.layers)


def test_names_are_paths():
    """The module's own come first, then those of the modules in it; attributes by name."""
    assert list(Network().named_variables) == [
        "count",
        "scales['b']",
        "scales['a'][0]",
        "again.bias",
        "again.kernel",
        "layers[1].bias",
        "layers[1].kernel",
    ]


def test_modules_nest_deeply():
    outer, inner = tf.Module(), tf.Module("inner")
    outer.parts = [{"x": inner}]
    inner.deep = {"w": [tf.Variable(1.0)]}
    assert list(outer.named_variables) == ["parts[0]['x'].deep['w'][0]"]
    assert outer.submodules == (inner,)


def test_names_of_modules():
    assert Dense(1, 1).name == "dense"
    assert Dense(1, 1, name="first").name == "first"
    assert type("HTTPNet2D", (tf.Module,), {})().name == "http_net2_d"
    for name in ("two words", 3):
        with pytest.raises(ValueError, match=f"{name!r} is not a valid module name"):
            tf.Module(name)


def test_without_super():
    """A subclass that forgets super().__init__() works."""

    class Forgetful(tf.Module):
        def __init__(self):
            self.w = tf.Variable(1.0)

    assert len(Forgetful().variables) == 1
    assert repr(Forgetful()) == "<tg.Module 'forgetful': 1 variables>"


def test_gradients_by_trainable_variables():
    network = Network()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(network(tf.ones((4, 2))))
    gradients = tape.gradient(loss, network.trainable_variables)
    missing = [g is None for g in gradients]
    assert missing == [False, True, False, False, False, False]  # scales['a'] is not used


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))]
)
def test_copies_are_apart(copied):
    layer = Dense(2, 1)
    other = copied(layer)
    assert other.kernel.numpy().tolist() == layer.kernel.numpy().tolist()
    layer.kernel.assign([[5.0], [6.0]])
    assert other.kernel.numpy().tolist() != [[5.0], [6.0]]
    assert list(other.named_variables) == ["bias", "kernel"]
