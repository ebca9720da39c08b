import time, os, psutil, pytest, json
from tests.workflows.test_holds import *
from baton.cli.up import SEARCH_ATTRIBUTES
VARIANTS={
 "base": ({}, {}),
 "part1": ({"matching.numTaskqueueReadPartitions":"1","matching.numTaskqueueWritePartitions":"1"}, {}),
 "gogc": ({}, {"GOGC":"400"}),
 "rps200": ({f"history.{p}ProcessorMaxPollRPS":"200" for p in ("transfer","timer","visibility")}, {}),
}
VARIANTS["part1gogc"]=(VARIANTS["part1"][0], {"GOGC":"400"})
VARIANTS["part1procs"]=(VARIANTS["part1"][0], {"GOGC":"400","GOMAXPROCS":"1"})
VARIANTS["part1misc"]=(VARIANTS["part1"][0]|{"system.enableActivityEagerExecution":"true","history.enableTransferInMemory":"true","frontend.enableUpdateWorkflowExecution":"true","history.cacheInitialSize":"512","system.visibilityDisableOrderByClause":"true"}, {})
_orig=EmbeddedTemporal._spawn
EXTRA={}
def _spawn(self,*a,environment=None,**k): return _orig(self,*a,environment={**environment,**EXTRA},**k)
EmbeddedTemporal._spawn=_spawn
def cpu(p):
    t=p.cpu_times(); return t.user+t.system
@pytest.mark.parametrize("name", os.environ.get("V","base,part1,gogc").split(","))
async def test_phases(name, database_url, tmp_path):
    settings, env = VARIANTS[name]
    EXTRA.clear(); EXTRA.update(env)
    with EmbeddedTemporal(tmp_path/"t", headless=True, search_attributes=SEARCH_ATTRIBUTES, settings=settings) as temporal:
        pass
        p=psutil.Process(temporal.pid); me=psutil.Process()
        m=ManyConducts()
        cases=[asked(seed, FLAT, moment, "hold") for seed, moment in enumerate(moments(FLAT)[::2])]
        a,b,w=cpu(p),cpu(me),time.perf_counter()
        async with m.opened(database_url, temporal.address) as stack:
            goings = await registered(cases, m, stack)
            await performed(goings, 0, stack)
            await finished(goings, stack)
            print(name, "temporal", round(cpu(p)-a,2), "python", round(cpu(me)-b,2), "wall", round(time.perf_counter()-w,1))
            a=cpu(p); await asyncio.sleep(3); print("idle temporal/3s", round(cpu(p)-a,2))
