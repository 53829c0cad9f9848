"""The process behind `run_interpreted`: runs jobs in Triton's CPU interpreter.

`python -m irc.codegen.triton.interpreted FOLDER` with TRITON_INTERPRET=1 reads `jobs.json` and
`inputs.npz` of the folder and writes `outputs.npz`.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    """Run every job of the folder."""
    import numpy as np

    from irc.codegen.triton.compiling import imported
    from irc.codegen.triton.runtime import _packed, _unpacked

    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    jobs = json.loads((folder / "jobs.json").read_text())
    outputs: dict[str, Any] = {}
    modules: dict[str, Any] = {}
    with np.load(folder / "inputs.npz", allow_pickle=False) as content:
        for number, job in enumerate(jobs):
            tensors = [
                _unpacked(content[f"{number}_{position}"], form)
                for position, form in enumerate(job["tensors"])
            ]
            module = modules.get(job["path"])
            if module is None:
                module = imported(Path(job["path"]).read_text(), f"irc_interpreted_{number}")
                modules[job["path"]] = module
            if job["grid"]:
                try:
                    getattr(module, job["name"])[(job["grid"],)](*tensors, *job["scalars"])
                except Exception as error:
                    error.add_note(f"while running {job['name']}, job {number}")
                    raise
            for position, tensor in enumerate(tensors):
                outputs[f"{number}_{position}"] = _packed(tensor)[0]
    np.savez(folder / "outputs.npz", **outputs)


if __name__ == "__main__":
    if os.environ.get("TRITON_INTERPRET") != "1":
        sys.exit("set TRITON_INTERPRET=1")
    main(Path(sys.argv[1]))
