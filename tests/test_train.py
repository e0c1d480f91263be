"""Checkpoints: what is saved and restored, under which names, and what is refused."""

import numpy as np
import pytest

import tinygrad_cg as tf

pytestmark = pytest.mark.quick


class Line(tf.Module):
    def __init__(self, start=0.0):
        super().__init__()
        self.layers = [{"kernel": tf.Variable([start, 2.0]), "bias": tf.Variable(start)}]


def step(model, optimizer):
    with tf.GradientTape() as tape:
        parts = model.layers[0]
        loss = tf.reduce_sum((parts["kernel"] * 3.0 + parts["bias"] - 1.0) ** 2)
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.variables), model.variables, strict=True)
    )


def test_training_goes_on_where_a_file_was_saved(tmp_path):
    """Also with fresh objects: an optimizer's slots are made for the variables in the file."""
    model, optimizer = Line(1.0), tf.optimizers.Adam(0.1)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)
    for _ in range(3):
        step(model, optimizer)
    path = checkpoint.save(tmp_path / "deep" / "ckpt")
    step(model, optimizer)
    wanted = [variable.numpy() for variable in (*model.variables, *optimizer.variables)]

    again, fresh = Line(), tf.optimizers.Adam()
    status = tf.train.Checkpoint(model=again, optimizer=fresh).restore(path)
    status.assert_consumed().assert_existing_objects_matched()
    step(again, fresh)
    values = [variable.numpy() for variable in (*again.variables, *fresh.variables)]
    for value, other in zip(values, wanted, strict=True):
        np.testing.assert_array_equal(value, other)
    with np.load(f"{path}.npz") as file:
        assert "model/layers/0/kernel" in file.files
        assert "optimizer/slots/model/layers/0/kernel/momentum" in file.files


def test_a_root_gives_its_own_names(tmp_path):
    path = tf.train.Checkpoint(Line(4.0)).write(tmp_path / "root")
    other = Line()
    tf.train.Checkpoint(other).read(path).assert_consumed()
    assert float(other.layers[0]["bias"]) == 4.0


def test_what_only_one_side_has_is_told(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).write(tmp_path / "x")
    c = tf.Variable(5.0)
    status = tf.train.Checkpoint(b=tf.Variable(0.0), c=c).read(path)
    with pytest.raises(AssertionError, match="without an object: a"):
        status.assert_consumed()
    with pytest.raises(AssertionError, match="no values of c"):
        status.assert_existing_objects_matched()
    assert status.expect_partial() is status
    assert float(c) == 5.0
    assert tf.train.Checkpoint(c=c).restore(None).expect_partial()


def test_a_file_that_does_not_fit_changes_nothing(tmp_path):
    path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable([2.0])).write(tmp_path / "x")
    a, b = tf.Variable(0.0), tf.Variable([0.0, 0.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"b has shape \(2,\).*\(1,\)"):
        tf.train.Checkpoint(a=a, b=b).read(path)
    assert float(a) == 0.0
    with pytest.raises(FileNotFoundError, match="there is no file"):
        tf.train.Checkpoint(a=a).read(tmp_path / "none")
    with pytest.raises(ValueError, match=r"rate must be a Variable.*got float"):
        tf.train.Checkpoint(rate=0.1)
    with pytest.raises(AttributeError, match="train"):
        tf.train.Saver  # noqa: B018


def test_names_generators_and_dtypes_of_all_kinds_are_kept(tmp_path):
    """NumPy's own arguments are names like others; a module's generator goes on where it was."""

    class Sampler(tf.Module):
        def __init__(self):
            super().__init__()
            self.generator = tf.random.Generator.from_seed(1)

    sampler, step = Sampler(), tf.Variable(7, dtype=tf.int8)
    objects = {"file": tf.Variable(2.0j), "allow_pickle": step, "rng": sampler.generator}
    checkpoint = tf.train.Checkpoint(sampler=sampler, **objects)
    sampler.generator.normal([3])
    path = checkpoint.write(tmp_path / "x")
    wanted = sampler.generator.normal([2]).numpy()
    step.assign(0)
    checkpoint.read(path).assert_consumed()
    assert (int(step), complex(objects["file"])) == (7, 2j)
    np.testing.assert_array_equal(sampler.generator.normal([2]), wanted)
    a = tf.Variable(0.0)
    path = tf.train.Checkpoint(a=tf.Variable(0.5), b=tf.Variable(1, dtype=tf.int64)).write(path)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"b has .* dtype int32, .* int64"):
        tf.train.Checkpoint(a=a, b=tf.Variable(1)).read(path)
    assert float(a) == 0.0
    with pytest.warns(UserWarning, match="values without an object: b"):
        tf.train.Checkpoint(a=a).read(path)
    (tmp_path / "x.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:99])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"x\.npz is not a complete checkpoint"
    ):
        checkpoint.read(path)


def test_a_manager_keeps_the_latest_files(tmp_path):
    step = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(step=step)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    assert manager.restore_or_initialize() is None
    for _ in range(4):
        step.assign_add(1)
        manager.save()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["checkpoint", "ckpt-3.npz", "ckpt-4.npz"]
    step.assign(0)
    again = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=None)
    assert again.restore_or_initialize() == tf.train.latest_checkpoint(tmp_path)
    assert int(step) == 4
    assert [path[-1] for path in again.checkpoints] == ["3", "4"]
    assert again.save().endswith("ckpt-5")
    assert again.save(checkpoint_number=9).endswith("ckpt-9")
    assert tf.train.latest_checkpoint(tmp_path / "empty") is None
    with pytest.raises(ValueError, match="max_to_keep must be at least 1"):
        tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=0)
