import time, json
from tests.api.agents import framed, FRAME
async def test_bench(api):
    zone = await api.create("/zones", {"name": "Hall"})
    async def timed(f, n=100):
        await f()
        t=time.perf_counter()
        for _ in range(n): await f()
        return (time.perf_counter()-t)/n*1000
    modern = json.dumps({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_zone","arguments":{"zone_id":zone},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}})
    h={**FRAME,"MCP-Protocol-Version":"2026-07-28","Mcp-Method":"tools/call","Mcp-Name":"get_zone"}
    async def m():
        r=await api.request("POST","/mcp",content=modern,headers=h); assert r.status_code==200 and not r.json()["result"].get("isError"), r.text
    print("rest", await timed(lambda: api.get(f"/zones/{zone}")))
    print("legacy", await timed(lambda: framed(api,"tools/call",{"name":"get_zone","arguments":{"zone_id":zone}})))
    print("modern", await timed(m))
    print("list legacy", await timed(lambda: framed(api,"tools/list"),10))
    r=await framed(api,"tools/list"); print(len(r.content), len(r.json()["result"]["tools"]))
