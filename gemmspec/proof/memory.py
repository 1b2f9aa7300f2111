"""Accesses to stages, accumulators, registers and store buffers, each checked against those before it.

A place knows its last writer, the readers since, and whose data it holds. An access is right if it is ordered
after what it depends on, if that is visible to it, and if the data is what the agent means.
"""

from __future__ import annotations

from gemmspec.proof.agents import Agent, Step
from gemmspec.proof.cells import Cell, Entry, Place, Places
from gemmspec.proof.clocks import Clock, seen
from gemmspec.proof.depths import Trips
from gemmspec.proof.fault import Fault, Kind
from gemmspec.proof.faults import Faults, at
from gemmspec.protocol.program import AccRead, Add, Branch, Load, Loop, Mma, Protocol, Send, StoreIssue, StoreWrite
from gemmspec.protocol.tile import Tiling, b_row_of, receive_slot, row_of
from gemmspec.vocabulary import Operand


class Memory:
    """All buffers of one cluster."""

    def __init__(self, protocol: Protocol, trips: Trips, faults: Faults) -> None:
        self.faults = faults
        self.spec, self.split = protocol.spec, protocol.spec.cluster.split
        self.k_tiles, self.tiles = trips.k, trips.tiles
        tiling = Tiling.of(protocol.spec)
        self.consumers, self.accumulators = tiling.consumers, tiling.accumulators
        self.ctas = protocol.spec.cluster.size
        self.tmem = protocol.spec.target.has_tmem
        self.order = "tcgen05 fence" if self.tmem else "scope"
        self.chunks = min(tiling.chunks, trips.chunks)
        self.stored: dict[tuple[int, int, int], set[int]] = {}
        """(CTA, consumer, tile) to the chunks of it that were stored."""
        pair = protocol.spec.pair if self.tmem else 1
        self.mma_ctas = [tuple(range(c - c % pair, c - c % pair + pair)) for c in range(protocol.spec.cluster.size)]
        loads = [s for p in protocol.programs for s in p.walk() if isinstance(s, Load)]
        a, b = (range(max((s.parts for s in loads if s.operand is o), default=1)) for o in (Operand.A, Operand.B))
        self.a_parts, self.b_parts = a, b
        shares = [(r, protocol.spec.cluster.share(r)) for r in range(self.ctas)]
        self.wanted = {
            Operand.A: [(row_of(protocol.spec, tiling, 0, r, 0), share) for r, share in shares],
            Operand.B: [(b_row_of(protocol.spec, tiling, 0, r), share) for r, share in shares],
        }
        """Which rows of an operand, and which share of the k tiles, each CTA loads and multiplies."""
        self.places = Places()

    def load(self, agent: Agent, step: Step, load: Load, written: int, cell: Cell) -> Entry:
        """A bulk load issued: its write is over when the cell's current phase completes."""
        entry = Entry(cell.stream, cell.completed, agent, step, agent.tile)
        first = agent.slot(load.slot)
        buffer, parts = ("A", self.a_parts) if load.operand is Operand.A else ("B", self.b_parts)
        if load.parts > 1:
            part = sum(rank < agent.cta for rank in load.writes.of(agent.cta)) % load.parts
            parts = range(part, part + 1)
        for slot in range(first, first + load.count):
            for part in parts:
                place = self.places[buffer, written, slot, part]
                self._write(place, entry, agent.clock)
                place.tag = (agent.tile, step.k)
        wanted = self.wanted[load.operand]
        if wanted[agent.cta] != wanted[written]:
            self.faults.add(Kind.WRONG_DATA, agent, step, None, f"{buffer}[{first}]", "rows of another CTA")
        return entry

    def mma(self, agent: Agent, step: Step, mma: Mma) -> None:
        """A multiply issued: over when a later commit's phase completes, or when it is retired."""
        entry = Entry(agent.mma_stream, agent.mmas, agent, step, agent.tile)
        a, b, acc = agent.slot(mma.a), agent.slot(mma.b), agent.slot(mma.acc)
        meant = (agent.tile, step.k)
        clock = agent.clock
        for cta in self.mma_ctas[agent.cta]:
            for part in self.a_parts:
                self._read(self.places["A", cta, a, part], entry, clock, meant)
            for part in self.b_parts:
                self._read(self.places["B", cta, b, part], entry, clock, meant)
            place = self.places["acc", cta, acc]
            writer = place.writer
            if writer is not None and writer.stream == entry.stream and not place.readers:
                place.writer = entry  # PTX ISA, tcgen05 and wgmma: multiplies of one thread run in order
            else:
                self._write(place, entry, agent.tmem_clock if self.tmem else clock)
            if place.tag != meant if step.k else place.tag[0] == agent.tile:
                self.faults.add(Kind.WRONG_DATA, agent, step, writer, place.name, "sum")
            if acc // self.accumulators != a % self.consumers:
                self.faults.add(Kind.WRONG_DATA, agent, step, None, place.name, "rows of another consumer")
            place.tag = (agent.tile, step.k + 1)
        agent.mmas += 1
        agent.mma_waits.append(agent.waits)

    def acc_read(self, agent: Agent, step: Step, read: AccRead) -> None:
        """A tensor memory load issued: over at the next wait::ld, known to others behind a before_thread_sync fence."""
        entry = Entry(agent.read_stream, agent.reads, agent, step, agent.tile)
        slot = agent.slot(read.acc)
        place = self.places["acc", agent.cta, slot]
        agent.owner = slot // self.accumulators
        self._read(place, entry, agent.tmem_clock, (agent.tile, self.k_tiles))
        agent.reads += 1
        agent.held = (agent.tile, step.chunk)
        agent.order += 1
        agent.last_read = agent.order

    def send(self, agent: Agent, step: Step, send: Send, owners: tuple[int, ...]) -> None:
        """All threads write the peers' shares of their registers into the peers' receive buffers."""
        entry = Entry(agent.move_stream, agent.moves, agent, step, agent.tile)
        acc = self.places["acc", agent.cta, agent.slot(send.acc)]
        self._read(acc, Entry(agent.index, agent.epoch, agent, step, agent.tile), agent.clock, self._partial(agent))
        for owner in owners:
            place = self.places["R", owner, agent.slot(send.slot) + receive_slot(self.spec, agent.cta, owner)]
            self._write(place, entry, agent.wide_clock)
            place.tag = self._partial(agent)
        agent.moves += 1

    def add(self, agent: Agent, step: Step, add: Add) -> None:
        """All threads add what the peers sent to their own share, which is whole then."""
        entry = Entry(agent.move_stream, agent.moves, agent, step, agent.tile)
        acc = self.places["acc", agent.cta, agent.slot(add.acc)]
        here = Entry(agent.index, agent.epoch, agent, step, agent.tile)
        self._read(acc, here, agent.clock, self._partial(agent))
        first = agent.slot(add.slot)
        for slot in range(first, first + add.parts):
            self._read(self.places["R", agent.cta, slot], entry, agent.wide_clock, self._partial(agent))
        acc.writer, acc.readers, acc.tag = here, [], self._whole(agent)
        agent.moves += 1

    def _partial(self, agent: Agent) -> tuple[int, int]:
        """The sum over the k tiles of one CTA."""
        return agent.tile, self.k_tiles

    def _whole(self, agent: Agent) -> tuple[int, int]:
        """The sum over all k tiles: where CTAs share a tile, one more step than the partial one."""
        return agent.tile, self.k_tiles + (self.split > 1)

    def store_write(self, agent: Agent, step: Step, write: StoreWrite) -> None:
        """All threads convert a chunk and write it to a store buffer."""
        entry = Entry(agent.index, agent.epoch, agent, step, agent.tile)
        if not self.tmem:
            agent.owner = self._registers(agent)
            place = self.places["acc", agent.cta, agent.owner]
            if self.split > 1 and place.tag == self._partial(agent):
                self.faults.add(Kind.WRONG_DATA, agent, step, None, place.name, "part of the sum")
            else:
                self._read(place, entry, agent.clock, self._whole(agent))
        elif agent.held != (agent.tile, step.chunk):
            self.faults.add(Kind.WRONG_DATA, agent, step, None, "registers", "chunk")
        elif agent.reads_done < agent.reads:
            self.faults.add(Kind.NOT_VISIBLE, agent, step, None, "registers", "wait::ld")
        place = self.places["D", agent.cta, agent.slot(write.buffer)]
        for reader in place.readers:
            if reader.turn >= agent.groups_done:
                self.faults.add(Kind.OVERWRITE, agent, step, reader, place.name, "store")
            elif agent.last_store_wait > agent.last_sync:
                # One thread waited for the store; the others know of it behind a sync of the warpgroup.
                self.faults.add(Kind.NOT_VISIBLE, agent, step, reader, place.name, "sync")
        agent.order += 1
        place.writer, place.readers, place.written_order = entry, [], agent.order
        place.tag = (agent.tile, step.chunk)

    def store_issue(self, agent: Agent, step: Step, issue: StoreIssue) -> None:
        """One thread starts the bulk store of a store buffer."""
        place = self.places["D", agent.cta, agent.slot(issue.buffer)]
        if place.tag != (agent.tile, step.chunk):
            self.faults.add(Kind.WRONG_DATA, agent, step, place.writer, place.name, "chunk")
        elif not place.written_order < agent.last_fence < agent.last_sync:
            self.faults.add(Kind.NOT_VISIBLE, agent, step, place.writer, place.name, "proxy fence")
        place.readers.append(Entry(-1, agent.groups, agent, step, agent.tile))
        agent.open_group = True
        stored = self.stored.setdefault((agent.cta, agent.owner, agent.tile), set())
        if step.chunk in stored:
            self.faults.add(Kind.WRONG_DATA, agent, step, None, "D", "stored twice")
        stored.add(step.chunk)

    def check_stored(self, agents: list[Agent]) -> None:
        """Check that every chunk of every tile of every consumer was stored."""
        wanted = ((c, o, t) for t in range(self.tiles) for c in range(self.ctas) for o in range(self.consumers))
        missing = next((key for key in wanted if len(self.stored.get(key, ())) < self.chunks), None)
        if missing is None:
            return
        cta, _, tile = missing
        actions = [(a, s) for a in agents if a.cta == cta for s in a.program.walk() if not isinstance(s, Loop | Branch)]
        found = [(a, s) for kind in (StoreIssue, AccRead) for a, s in actions if isinstance(s, kind)] or actions
        agent, action = found[0]
        self.faults.put(Fault(Kind.WRONG_DATA, at(agent, Step(action), tile), None, "D", "chunks missing"))

    def _registers(self, agent: Agent) -> int:
        return next((agent.slot(s.action.acc) for s in agent.steps if isinstance(s.action, Mma)), agent.instance)

    def _read(self, place: Place, entry: Entry, known: Clock, meant: tuple[int, int]) -> None:
        writer, agent = place.writer, entry.agent
        if writer is None:
            self.faults.add(Kind.READ_EARLY, agent, entry.step, None, place.name, "")
        elif writer.stream != agent.index and seen(known, writer.stream) <= writer.turn:
            if seen(agent.clock, writer.stream) > writer.turn:
                self.faults.add(Kind.NOT_VISIBLE, agent, entry.step, writer, place.name, self.order)
            elif place.tag > meant:
                # The next data may come before this read is over: told from the writer's side.
                self.faults.between(Kind.OVERWRITE, writer, entry, place.name)
            else:
                self.faults.add(Kind.READ_EARLY, agent, entry.step, writer, place.name, "")
        elif place.tag != meant:
            self.faults.add(Kind.WRONG_DATA, agent, entry.step, writer, place.name, f"{place.tag} for {meant}")
        if place.readers:
            # Within one stream a later read outlives the earlier.
            place.readers = [r for r in place.readers if r.stream != entry.stream]
        place.readers.append(entry)

    def _write(self, place: Place, entry: Entry, known: Clock) -> None:
        agent = entry.agent
        for reader in place.readers:
            if reader.stream != agent.index and seen(known, reader.stream) <= reader.turn:
                kind = Kind.NOT_VISIBLE if seen(agent.clock, reader.stream) > reader.turn else Kind.OVERWRITE
                self.faults.add(kind, agent, entry.step, reader, place.name, self.order)
                break
        else:
            writer = place.writer
            unknown = writer is not None and seen(known, writer.stream) <= writer.turn
            if writer and unknown and writer.stream not in (agent.index, agent.mma_stream, agent.move_stream):
                self.faults.add(Kind.WRITE_WRITE, agent, entry.step, writer, place.name, "")
        place.writer, place.readers = entry, []
