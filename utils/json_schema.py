"""A value of JSON against a schema of docs/schema: the part of JSON Schema (2020-12) that these use, and no more.

A keyword that is not known here, an object that does not say what else it may have, and a `$ref` that leads nowhere are
errors of the schema, not of the value. Otherwise a slip of a schema would accept everything.

Limits: of several `anyOf` that all refuse a value the one that got farthest is named; `$ref` leads to another file of the
folder or to `#/$defs/NAME`.
"""

import json
from pathlib import Path

ANNOTATIONS = {"$schema", "title", "description", "$defs"}
KEYWORDS = ANNOTATIONS | {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "$ref"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int, "number": (int, float)}


class SchemaError(Exception):
    """The schema itself is wrong."""


def is_of_type(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


class Schemas:
    """Schemas of a folder. `seen` has the properties that some value had, by the place of their object."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.files = {}
        self.seen = set()

    def load(self, name):
        if name not in self.files:
            try:
                self.files[name] = json.loads((self.folder / name).read_text())
            except (OSError, ValueError) as error:
                raise SchemaError(f"{name}: {error}") from None
            self.check(self.files[name], f"{name}#")
        return self.files[name]

    def resolve(self, ref, place):
        """The schema that a `$ref` names, and its place."""
        name, _, path = ref.partition("#")
        name = name or place.partition("#")[0]
        target = self.load(name)
        for key in path.strip("/").split("/") if path else []:
            if not isinstance(target, dict) or key not in target:
                raise SchemaError(f"{place}: $ref leads nowhere: {ref}")
            target = target[key]
        return target, f"{name}#{path}"

    def check(self, schema, place):
        """Refuses a schema that is not understood here."""
        if not isinstance(schema, dict):
            raise SchemaError(f"{place}: a schema is an object")
        unknown = set(schema) - KEYWORDS
        if unknown:
            raise SchemaError(f"{place}: keyword {sorted(unknown)[0]} is not known")
        types = schema.get("type", [])
        for name in [types] if isinstance(types, str) else types:
            if name not in TYPES:
                raise SchemaError(f"{place}: type {name} is not known")
        if schema.get("type") == "object" and "additionalProperties" not in schema:
            raise SchemaError(f"{place}: additionalProperties is missing")
        missing = set(schema.get("required", [])) - set(schema.get("properties", {}))
        if missing:
            raise SchemaError(f"{place}: required {sorted(missing)[0]} is no property")
        if "$ref" in schema:
            self.resolve(schema["$ref"], place)
        for keyword in ("properties", "$defs"):
            for name, of in schema.get(keyword, {}).items():
                self.check(of, f"{place}/{keyword}/{name}")
        inner = [schema[name] for name in ("items", "additionalProperties") if isinstance(schema.get(name, False), dict)]
        for of in inner + schema.get("anyOf", []):
            self.check(of, place)

    def list_unseen(self, name):
        """Properties of a file's objects that no value had so far."""
        def walk(schema, place):
            for key, of in schema.get("properties", {}).items():
                if (place, key) not in self.seen:
                    yield f"{place}: {key}"
                yield from walk(of, f"{place}/{key}")
            for key, of in schema.get("$defs", {}).items():
                yield from walk(of, f"{name}#/$defs/{key}")
            for number, of in enumerate(schema.get("anyOf", [])):
                yield from walk(of, f"{place}|{number}")
            for key in ("items", "additionalProperties"):
                if isinstance(schema.get(key, False), dict):
                    yield from walk(schema[key], f"{place}[]")
        yield from walk(self.load(name), f"{name}#")

    def validate(self, value, name):
        """None, or where and why a value is not one of the schema."""
        error = self.find_error(value, self.load(name), f"{name}#", "$")
        return f"{error[0]}: {error[1]}" if error else None

    def find_error(self, value, schema, place, path):
        if "$ref" in schema:
            error = self.find_error(value, *self.resolve(schema["$ref"], place), path)
            if error:
                return error
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else types
        if types and not any(is_of_type(value, name) for name in types):
            return path, f"is {json.dumps(value)[:40]}, expected {' or '.join(types)}"
        if "enum" in schema and value not in schema["enum"]:
            return path, f"is {json.dumps(value)[:40]}, expected one of {', '.join(map(json.dumps, schema['enum']))}"
        if "anyOf" in schema:
            errors = []
            for number, of in enumerate(schema["anyOf"]):
                errors.append(self.find_error(value, of, f"{place}|{number}", path))
                if errors[-1] is None:
                    break
            else:
                return max(errors, key=lambda error: len(error[0]))
        if isinstance(value, dict):
            return self.find_object_error(value, schema, place, path)
        if isinstance(value, list) and "items" in schema:
            for number, item in enumerate(value):
                error = self.find_error(item, schema["items"], f"{place}[]", f"{path}[{number}]")
                if error:
                    return error
        return None

    def find_object_error(self, value, schema, place, path):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for key in schema.get("required", []):
            if key not in value:
                return path, f"{key} is missing"
        for key, member in value.items():
            if key not in properties and others is False:
                return path, f"{key} is not in the schema"
            of = (properties[key], f"{place}/{key}") if key in properties else (others, f"{place}[]")
            error = self.find_error(member, *of, f"{path}.{key}") if isinstance(of[0], dict) else None
            if error:
                return error
        self.seen.update((place, key) for key in value if key in properties)
        return None
