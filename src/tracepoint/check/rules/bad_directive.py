"""A `#define` cannot be read.

## What it does

Reports `#define` without a name, and parameter lists that are not lists of names.

## Why it is bad

The compiler rejects it, and whatever the macro should have declared is not checked.

## Example

```c
#define 3D_EVENT(name) /* error: TP004 */
```

## Use instead

```c
#define EVENT_3D(name)
```

## Fix safety

None is offered.
"""
