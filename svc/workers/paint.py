"""The painter: reads one JSON line `{prompt, width, height, variation}` from stdin and writes a PNG to stdout.

prompt -> scene.py (what it shows) -> sky -> place, from far to near -> things -> weather -> PNG
A prompt without any word that it knows becomes an abstract composition.
"""

import json
import os
import resource
import sys

from svc.workers import creatures, growth, works
from svc.workers.abstract import compose
from svc.workers.canvas import Canvas
from svc.workers.places import PLACES
from svc.workers.scene import Scene, scene_of
from svc.workers.stage import Stage

_CPU_SECONDS = 20
_MEMORY_BYTES = 512 * 1024 * 1024

# How high each thing stands, in hundredths of the picture's shorter side.
_ON_LAND = {
    "lighthouse": (works.lighthouse, 46), "house": (works.house, 19), "castle": (works.castle, 40), "church": (works.church, 30),
    "windmill": (works.windmill, 34), "pyramid": (works.pyramid, 30), "tree": (growth.leafy, 44), "palm": (growth.palm, 42),
    "cactus": (growth.cactus, 26), "flower": (growth.flower, 22), "mushroom": (growth.mushroom, 17), "cat": (creatures.cat, 32),
    "dog": (creatures.dog, 25), "bear": (creatures.bear, 32), "sheep": (creatures.sheep, 14), "owl": (creatures.owl, 30),
    "person": (creatures.person, 24), "robot": (works.robot, 36), "tent": (works.tent, 15), "fire": (works.fire, 10),
    "snowman": (creatures.snowman, 28), "train": (works.train, 11), "car": (works.car, 12), "pumpkin": (creatures.pumpkin, 16),
}  # fmt: skip
_IN_THE_AIR = {
    "balloon": (works.balloon, 30), "rocket": (works.rocket, 42), "ufo": (works.ufo, 18), "butterfly": (creatures.butterfly, 11),
    "heart": (works.heart, 34),
}  # fmt: skip
_IN_WATER = {"fish": (creatures.fish, 12), "whale": (creatures.whale, 22), "jellyfish": (creatures.jellyfish, 26)}
# Several of these in a row look as if they grew there.
_GROWING = {"flower", "tree", "cactus", "mushroom", "palm"}


def picture(prompt: str, width: int, height: int, variation: int = 0) -> bytes:
    """The PNG of a prompt, `width` times `height` pixels; each `variation` (from 0) is another picture of it."""
    scene = scene_of(prompt, variation)
    canvas = Canvas(width, height)
    if scene.place == "abstract":
        compose(canvas, scene)
        return canvas.png()
    stage = Stage(canvas, scene)
    stage.sky()
    _far_things(stage)
    PLACES[scene.place](stage)
    _things(stage, scene)
    stage.weather()
    return canvas.png()


def _far_things(stage: Stage) -> None:
    """What the land may cover."""
    if any(name == "bridge" for name, _ in stage.scene.things) and stage.scene.place not in ("sea", "lake"):
        works.bridge(stage, 0, 0, 40 * stage.unit)


def _things(stage: Stage, scene: Scene) -> None:
    if any(name == "bridge" for name, _ in scene.things) and scene.place in ("sea", "lake"):
        works.bridge(stage, 0, 0, 40 * stage.unit)
    kinds = len(scene.things)
    # The first thing stands opposite to the light, the others on either side of it.
    spots = [0.66, 0.3, 0.84, 0.14, 0.5, 0.94] if stage.left_light else [0.34, 0.7, 0.16, 0.86, 0.5, 0.06]
    for number, (name, count) in reversed(list(enumerate(scene.things))):
        size = 1.0 if number == 0 else 0.8
        for one in range(count):
            spread = 0.0 if count == 1 else (one - (count - 1) / 2) * (0.8 / count if kinds == 1 else 0.36 / count)
            x = (0.5 if count > 1 and kinds == 1 else spots[number]) + spread + stage.dice.between(-0.02, 0.02)
            _thing(stage, name, x * stage.width, size * (1 if count == 1 else stage.dice.between(0.55, 0.85)))


def _thing(stage: Stage, name: str, x: float, size: float) -> None:
    dice, unit = stage.dice, stage.unit
    if name in _ON_LAND:
        draw, tall = _ON_LAND[name]
        sunk = dice.between(0.5, 4) * unit if name in _GROWING or size < 0.85 else unit
        draw(stage, x, min(stage.ground(x) + sunk, stage.height * 0.985), tall * size * unit)
    elif name in _IN_THE_AIR:
        draw, tall = _IN_THE_AIR[name]
        low = stage.horizon * (0.94 if name == "butterfly" else 0.8)
        draw(stage, x, max(dice.between(0.5, 1) * low, (tall * size + 6) * unit), tall * size * unit)
    elif name in _IN_WATER:
        draw, tall = _IN_WATER[name]
        below = stage.scene.place == "reef"
        y = dice.between(0.3, 0.72) * stage.height if below else stage.horizon + dice.between(8, 18) * unit
        draw(stage, x, y, tall * size * unit * (1 if below else 0.7))
    elif name == "boat":
        far = dice.between(0.1, 0.6)
        works.boat(stage, x, stage.horizon + far * 18 * unit, (13 + 17 * far) * size * unit)
    elif name == "pine":
        growth.pine(stage, x, stage.ground(x) + 2 * unit, 46 * size * unit, stage.depth(0.95))


def main() -> None:
    os.nice(10)  # the server, which answers everybody, goes first
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    order = json.loads(sys.stdin.buffer.readline())
    sys.stdout.buffer.write(picture(order["prompt"], order["width"], order["height"], order["variation"]))


if __name__ == "__main__":
    main()
