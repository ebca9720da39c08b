"""Builds the package `baton` from the directory `src`, with the files that are made from its declarations.

An editable installation, for development, has `baton_bluesky` as well, whose distribution is built from `witness`.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

SOURCE = Path(__file__).parent / "src"
BESIDE = {"baton_bluesky": "witness/baton_bluesky"} if "editable_wheel" in sys.argv else {}


class BuildWithGeneratedFiles(build_py):
    """Writes the generated files into the source tree, from where they are packed, or used by an editable installation."""

    def run(self) -> None:
        import_package()
        from baton.cli.generated_files import write_generated_files

        write_generated_files(SOURCE)
        super().run()


def import_package() -> None:
    """Import `baton` from its directory here, whether or not there is a link of that name, or another installation."""
    spec = spec_from_file_location("baton", SOURCE / "__init__.py", submodule_search_locations=[str(SOURCE)])
    assert spec is not None
    assert spec.loader is not None
    package = sys.modules["baton"] = module_from_spec(spec)
    spec.loader.exec_module(package)


setup(
    packages=[
        "baton",
        *(f"baton.{name}" for name in find_namespace_packages(str(SOURCE), exclude=["*__pycache__"])),
        *BESIDE,
    ],
    package_dir={"baton": "src", **BESIDE},
    cmdclass={"build_py": BuildWithGeneratedFiles},
)
