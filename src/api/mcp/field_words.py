"""Words that scientists, operators and agents use, and the words of the record that they stand for; the search of operations
knows both. Each line is `said, said: meant meant`; what is said
may be several words, which then must follow one another. `!` marks what a text is about, whatever else it says."""

STOP_WORDS = """
a about all am an and any anyone anything are as at be been but by came come could did do does done else ever for from get
give go got had has have having here how i if in into is it its just let like make many may me might much must my need no not
of off on one only or our out over please should so some somebody someone something tell that the their them then there these
they this those to too up us want was we were what when where whether which who whole whom whose why will with would you your
again aren can cannot couldn didn doesn doesnt don dont give hasn haven hello hey hi isn kindly ll lot maybe ok okay pls re
really s shall some still t than thank thanks thing things ve very wanna wasn whats wheres won wouldn yes
"""
"""Words that say nothing about an operation by themselves; phrases may hold them."""

QUESTION_WORDS = """
what which who whose when where why how is are was were does did has have any anything show list find see progress status
overview do am can could may might should would will whats whos wheres hows isn aren doesn didn hasn haven wasn tell check
compare explain describe look display print give
"""
"""Words that a text begins with which asks to know something."""

POLITE_BEGINNINGS = """
how do i, how do we, how can i, how can we, how to, can you, could you, would you, will you, tell everybody, tell everyone,
tell others, give him, give her, give the, give a, give somebody, check in, check out
"""
"""Beginnings that ask for something to be done, although their first word is one of a question."""

SYNONYMS = """
scan, scans, experiment, shot, exposure series, tomogram: run
measurement: run observations
measuring: run
tomography: run plan
parameters, exposure: parameters run
acquisition: acquisition run
sample, samples, specimen, crystal, probe: subject
motor, axis, theta, slit, actuator: asset signals
camera, detector, stage, hexapod, device, devices, instrument, equipment, hardware, component, machine: asset
monochromator: asset
rotation stage: asset signals
inventory: assets
parts, hierarchy, below: asset tree
pv, pvs, epics, process variable, process variables, address: signals
channel: signals channels
value, readback: read signals
position of, where is, what position: read signals
temperature, pressure, current of: read signals
beam, photon, photons, ring, storage ring, vacuum, helium, nitrogen, cooling, gas, water, power: supply
beam current, beam status: supply now
storage: supply distribution
hutch, hutches, interlock, search permit, searched: enclosure
permit: enclosure clearance
radiation: clearance enclosure
station: enclosure surface
endstation, console, terminal: surface
pause, freeze, interrupt, halt, suspend: hold suspend
wait: hold waiting
continue, unpause, proceed, carry on, go on, restart, start again: resume
cancel: abort cancel
kill, terminate, give up: abort truncate
quit: stop abort
finish, finished: complete
end: complete end stop
crashed, died, dead, crash: truncate
abandon: abort abandon
emergency, danger, dangerous, unsafe, panic, smoke, fire alarm, evacuate: hold !everything abort
all stop, stop everything, pause everything, freeze everything, abort everything, stop all, hold all: hold everything
freeze all, halt all: hold everything
all motion, all movement, all work: everything
begin, launch, kick off, fire up: start
execute, perform, carry out, do the: start conduct
move, drive, rotate, translate, home, jog, go to, drive to, scan the motor: setpoint conduct procedure
set a motor, set the motor, set the temperature, set a value: setpoint conduct procedure
open the shutter, close the shutter, open shutter, close shutter, switch on, switch off: setpoint conduct procedure
turn on, turn off: setpoint conduct procedure
shutter: asset setpoint
take a picture, take an image, take a photo, take a snapshot, take a frame: capture acquire conduct procedure
acquire an image, take images: capture acquire conduct procedure
picture, photo, image, images, snapshot, frame: capture image
flat field, dark field: procedure
task: procedure
job: work procedure
alignment: procedure
align, focus, centre, center, autofocus: converged procedure
optimise, optimize, optimiser, optimizer, optimisation, optimization: advised converged
tune, automatically: converged advised
search for, best point, best value: advised
iterate, loop, again and again: converged iteration
until: converged advised
steer, steered: steering advise procedure
suggest, recommend, advice: advise steering
propose: advise proposal
next point, measure next, choose the points: advise steering advised
progress, percent: conduct now
how far, how far along: conduct progress
how long, time left, eta, remaining, when will, finish time: conduct estimate
which step, what step, current step: conduct
steps, step: recipe step procedure
script, program, sequence, protocol, macro: recipe
technique: method
ready, dry fire: preflight
can i start, can i run, can i begin, can we start, can we run, may i start, could start, could i start: preflight
would start: preflight
not start, cannot start, able to start, ready to start, be allowed, would pass, keeps from starting: preflight
keep from starting: preflight
gates, gate, check whether, prerequisites, precondition, preconditions, blocked, blocks, blocking, prevents: preflight
who did, who changed, who started, who stopped, who moved, who pressed, who held, who aborted: events history
who touched, by whom: events history
what happened, what was done, has been done: events history
changed: events history update
happened, yesterday, last night, last hour, today, this morning, recent, recently, since: events
activity: events activities
audit, trail, trace: events history
log of: events logbook
changes: history events
happening, going on, running now, right now, at the moment, overview, dashboard, situation, current state: beamline now
at a glance: beamline now
state of the beamline, status of the beamline, beamline status: beamline now
status: now get
currently, current, live, now: now get
attention, inbox, to do, todo, pending, waiting for, waits for, stuck, requires a decision, needs a decision: waiting
from me, for me: waiting
permission, permissions, rights, authorization, privileges, permit somebody, allowed to use: !policy permissions access
role of a user: policy
grant: policy grant
access: policy access permissions
allowed to do, am i allowed, may i do, can i do, who am i, logged in as, signed in, my identity, my permissions: access
my rights: access
may do, is allowed to, who may, who can: policy permissions
give permission, grant access, give access, permission to, allow, authorize, authorise, entitle: define !policy
may operate: define !policy
revoke, withdraw: revoke withdraw
take away: revoke remove
rights of, remove rights, s rights, withdraw permission, lose access, lock out: !revoke !grant
denied, forbidden: !verdicts
refused, rejected: verdicts reject preflight
user, users, person, people, account, colleague, staff, scientist, member, student, postdoc, login: actor
operator: actor
personal data, gdpr, erase: forget profile
email, phone, contact: profile
delete, drop, get rid of, outdated, obsolete, no longer, expired: remove retire discard expire deprecate
remove: remove retire discard revoke
safety, approval, approvals, esaf, form, hazard: clearance
sign off: approve clearance
hand in, file: submit register
valid, in force: clearance
warning, warnings, warn, alert, notice, known problem, known problems, known issue, known issues, beware: !caution
attention to, watch out, careful: !caution
tell everybody, tell everyone, tell others, inform others: !caution register
lost, gone, dumped, tripped, dropped, ran out, run out, empty, out of, exhausted, missing: unavailable supply mark
failed supply: unavailable supply mark
down: unavailable fault
is back, works again, back to normal, came back: restore
repaired, fixed: restore maintenance
broken, defect, failed, fails, malfunction, out of order, faulty: fault
faulted: fault now
bad condition, not quite right, acting up, flaky, unreliable, noisy, drifts, drifting, partly, limping: !degrade
half broken, still works, worse than, weak: !degrade
repair, service, maintenance mode: maintenance
in use again: activate exit maintenance
is back from: exit
into service, in service: activate version
limit, limits, range, travel, soft limits, speed limit, too far: signal limits
note, notes, comment, remark, annotate, jot, logbook entry: !logbook !entries append run
diary, journal, elog: logbook
write down: append logbook
readings, reading, data points: observations
measured: observations measure
telemetry: observations channels
files, hdf5, data written, data saved, data stored: files dataset
data, raw data, written: dataset
result, results: dataset result
nexus: scan dataset
import: ingest
checksum, checksums, integrity, intact, corrupt, corrupted, bit rot, verify, hash, damaged files: !attest !attestation
copies, copy, backup, replica, tape: distribution
doi, dois: !publish !edition mint
publish: publish edition
cite, citable, citation, publication, paper, package: !edition publish register
lineage, come from, comes from, came from, made from, derived from, origin, ancestry, ancestors: !provenance
derived: provenance derived
metadata: get
every morning, every night, every day, every hour, every week, every monday, every two, every three: define !schedule
every minutes, hourly, weekly, monthly, at night: define !schedule
nightly, daily, recurring, regularly, calendar, timer, cron, repeat, periodically, automatic start: !schedule
scheduled: schedule
fire: trigger schedule
firing, firings: !schedule
automation: schedule agent
bot, ai, assistant, robot, agents: agent
llm, gpt, language models: language model
spend, cost, costs, money, tokens, expensive, dollars: !budget agent inferences
reason for, rationale, decide, decided, choice, chose: decision
why did the run, why did the scan, did the scan fail, run fail, run failed, scan failed: run conduct history
what went wrong, went wrong: run conduct history
bar, from using, no longer use, disable: deactivate actor
summary of the run, post mortem, report: debrief
calibrate, calibrated, pixel size, offset, correction: !calibration revision
series, group, bundle, belong together, collect runs, set of scans: !campaign register add
proposal: visit campaign proposal
beamtime, session, team, guest, visitor: visit
arrived: arrival
came in, check into, checks in, check the team: check in visit
leaves, left: check out
take over, takeover: take control
in charge, drives, driving: control
unknown outcome, outcome unknown, was it done: resolve step
skip: skip wait
new, create, set up, introduce: register define
add: add register
enter: register append define
write: define append
record: record append register
put in, insert, load, put on: mount install register
unload, unmount, take off, takes off, take out: dismount
swap, exchange: mount dismount
mounted: mount list
dispose, throw away: discard
send back: return
shelf: store
change, edit, modify, correct: update adjust set
set: set update
replace: supersede version update
new version, update the recipe: version
close it, close the books: truncate
show, see, display: get list
look, view: get
find, what, which, any: list
where: get
how many: list
last week, used to be, in the past, past: history get
before: history
old version: versions history
cable: wire
plug, connector: port
place: mount relocate
move to another: relocate
position: frame mount placement
vendor, manufacturer: model
catalog: model family
type of device, kind of device, class of device: family
site: facility
partner, peer: facility permit
sharing, share: permit publish
key, secret, certificate: credential
signature: seal
background, long work: work reactions
queue, queues, queued, enqueue, line up: !queue
mono, mirror, undulator, goniometer, scintillator, objective, lens, microscope, pump, gauge, valve, filter: asset
attenuator, diode, robot arm, sample changer, controller, encoder, spectrometer, chopper, cryostat, furnace: asset
energy, wavelength: signals calibration
tomo, radiograph, xanes, diffraction, spectrum, mapping, time series: run plan
projection, projections, angles: run parameters
dark, darks, flat, flats, white field: procedure capture
recon, reconstruction, reconstructed, volume, volumes, slice, slices, sinogram, processed: dataset
backed up, archived, mirrored, second copy: !distribution
garbage, rubbish, useless, junk, worthless: discard demote
bibtex, how to cite, reference for: !datacite
grinding, squeaks, rattles, overheats, jitters, vibrates, hot, slow, wobbles, strange noise, makes noise: !degrade fault
jammed, stalls, stalled, does not respond, not responding, unresponsive, offline, hangs: fault
bayesian, adaptive, autonomous, closed loop, machine learning, gaussian process: !advised steering
knife edge, pitch, tilt, roll: signals
survey, surveyed, laser tracker: !placement
door, enter the hutch, go inside, into the hutch, lead: enclosure
ups, electricity, compressed air, argon, liquid nitrogen, cryogen, disk space, network: supply
refill, refilled, topped up: restore recovering supply
to sign, sign for me: waiting
virtual, pseudo: partition rule
chemical, chemicals, biohazard, laser, toxic, risk assessment, training: clearance
duplicate, by mistake, registered twice, entered twice, typo: void
user group, proposal team, shift: visit
handover, hand over: control release
who: events history
when: events history schedule
give: define grant
"""
"""What is said, and the words that operations use for it."""
