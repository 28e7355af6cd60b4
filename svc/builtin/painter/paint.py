"""The painter: reads one JSON line `{prompt, width, height, variation}` from stdin and writes a PNG to stdout.

prompt -> scene.py (what it shows) -> sky -> place, from far to near -> things -> weather -> PNG
A prompt without any word that it knows becomes an abstract composition.
"""

import json
import os
import resource
import sys
from collections.abc import Sequence

from svc.builtin.painter import creatures, growth, vehicles, works
from svc.builtin.painter.abstract import compose
from svc.builtin.painter.canvas import Canvas
from svc.builtin.painter.figure import Figure
from svc.builtin.painter.growth import meadow
from svc.builtin.painter.places import PLACES
from svc.builtin.painter.scene import Thing, scene_of
from svc.builtin.painter.stage import Stage

_CPU_SECONDS = 20
_MEMORY_BYTES = 512 * 1024 * 1024

# How high each thing stands, in hundredths of the picture's shorter side.
_ON_LAND = {
    "lighthouse": (works.lighthouse, 46), "house": (works.house, 19), "castle": (works.castle, 40), "church": (works.church, 30),
    "windmill": (works.windmill, 34), "pyramid": (works.pyramid, 30), "tree": (growth.leafy, 44), "palm": (growth.palm, 42),
    "cactus": (growth.cactus, 26), "flower": (growth.flower, 22), "mushroom": (growth.mushroom, 17), "cat": (creatures.cat, 32),
    "dog": (creatures.dog, 25), "bear": (creatures.bear, 32), "sheep": (creatures.sheep, 14), "owl": (creatures.owl, 30),
    "person": (creatures.person, 24), "robot": (vehicles.robot, 36), "tent": (works.tent, 15), "fire": (works.fire, 10),
    "snowman": (creatures.snowman, 28), "train": (vehicles.train, 11), "car": (vehicles.car, 12), "pumpkin": (growth.pumpkin, 16),
}  # fmt: skip
_IN_THE_AIR = {
    "balloon": (vehicles.balloon, 30), "rocket": (vehicles.rocket, 42), "ufo": (vehicles.ufo, 18),
    "butterfly": (creatures.butterfly, 11), "heart": (vehicles.heart, 34),
}  # fmt: skip
_IN_WATER = {"fish": (creatures.fish, 16), "whale": (creatures.whale, 22), "jellyfish": (creatures.jellyfish, 26)}
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
    bridges = [thing for thing in scene.things if thing.name == "bridge"]
    on_water = scene.place in ("sea", "lake", "city")
    for thing in () if on_water else bridges:
        works.bridge(stage, thing.shade)  # far away: the land may cover it
    PLACES[scene.place](stage)
    for thing in bridges if on_water else ():
        works.bridge(stage, thing.shade)
    _things(stage, [thing for thing in scene.things if thing.name != "bridge"])
    stage.weather()
    return canvas.png()


def _things(stage: Stage, things: Sequence[Thing]) -> None:
    # The first thing stands opposite to the light, the others on either side of it.
    spots = [0.66, 0.3, 0.84, 0.14, 0.5, 0.94] if stage.left_light else [0.34, 0.7, 0.16, 0.86, 0.5, 0.06]
    alone = len(things) == 1
    for thing in things:
        if _is_meadow(thing):
            meadow(stage, thing.shade)
    for number, thing in reversed(list(enumerate(things))):
        if _is_meadow(thing):
            continue
        size = 1.0 if number == 0 else 0.8
        for one in range(thing.count):
            spread = (one - (thing.count - 1) / 2) * (0.8 if alone else 0.36) / thing.count
            x = (0.5 if thing.count > 1 and alone else spots[number]) + spread + stage.dice.between(-0.02, 0.02)
            _draw(stage, thing, x * stage.width, size if thing.count == 1 else size * stage.dice.between(0.55, 0.85))


def _is_meadow(thing: Thing) -> bool:
    return thing.name == "flower" and thing.count > 2


def _draw(stage: Stage, thing: Thing, x: float, size: float) -> None:
    dice, unit, name = stage.dice, stage.unit, thing.name
    if name in _ON_LAND:
        draw, tall = _ON_LAND[name]
        sunk = dice.between(0.5, 4) * unit if name in _GROWING or size < 0.85 else unit
        foot = min(stage.ground(x) + sunk, stage.height * 0.985)
    elif name in _IN_THE_AIR:
        draw, tall = _IN_THE_AIR[name]
        low = stage.horizon * (0.94 if name == "butterfly" else 0.8)
        foot = max(dice.between(0.5, 1) * low, (tall * size + 6) * unit)
    elif name in _IN_WATER:
        draw, tall = _IN_WATER[name]
        below = stage.scene.place == "reef"
        foot = dice.between(0.3, 0.72) * stage.height if below else stage.horizon + dice.between(8, 18) * unit
    elif name == "boat":
        far = dice.between(0.1, 0.6)
        draw, tall, foot = vehicles.boat, round(13 + 17 * far), stage.horizon + far * 18 * unit
    elif name == "pine":
        growth.pine(Figure(stage, x, stage.ground(x) + 2 * unit, 46 * size * unit), thing.shade or stage.depth(0.95))
        return
    else:  # it belongs to the place, such as the planets
        return
    draw(Figure(stage, x, foot, tall * size * unit, thing.shade))


def main() -> None:
    os.nice(15)  # the server, which answers everybody, goes first
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    order = json.loads(sys.stdin.buffer.readline())
    sys.stdout.buffer.write(picture(order["prompt"], order["width"], order["height"], order["variation"]))


if __name__ == "__main__":
    main()
