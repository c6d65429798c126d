"""Small recordings of many generated hosts, by the writer and the formats of a real kernel."""

import random

from analysis.test_sched_generated import world_of


def host_data(number, n_steps=120):
    """A trace.dat of host `number`; some of its records are lost."""
    rng = random.Random(number)
    world = world_of(rng, rng.randint(1, 4), n_steps)
    last = {line[2][0]: at for at, line in enumerate(world.lines)}
    lost = (
        {at for at in range(1, n_steps) if rng.random() < 0.01} - set(last.values()) if number % 3 else set()
    )
    return world.schedule(lambda at: at not in lost, host=f"web{number}").data()


def make_fleet(folder, n_hosts, n_steps=120):
    """Write recordings of hosts to a folder; return it."""
    folder.mkdir(exist_ok=True)
    for number in range(n_hosts):
        (folder / f"{number:05d}.dat").write_bytes(host_data(number, n_steps))
    return folder
