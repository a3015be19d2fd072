"""Modules that are loaded when something of them is first used.

Each trial of a confirmation has a separate session, which imports the engine. Most of that time goes to modules that the audited functions do not use."""
import importlib.util
import sys
import types


def later(name):
    """Put the module into sys.modules without running it; the first use of an attribute runs it."""
    spec = importlib.util.find_spec(name)

    class Later(types.ModuleType):
        def __getattr__(self, attribute):
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            self.__class__ = types.ModuleType
            spec.loader.exec_module(self)
            return getattr(self, attribute)

    module = importlib.util.module_from_spec(spec)
    module.__class__ = Later
    sys.modules[name] = module
