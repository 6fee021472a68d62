"""mbarrier phases and counts, named barriers, cluster barriers."""

from families.builder import freeform, index, output, random_bits

SYNC = "Parallel Synchronization and Communication Instructions: "
MBAR = SYNC + "mbarrier"


class Script:
    """One thread's operations on one mbarrier; every test's answer becomes one output byte."""

    def __init__(self):
        self.lines, self.answers, self.states = [], 0, 0

    def do(self, text):
        self.lines.append("  " + text)
        return self

    def init(self, count):
        return self.do(f"mbarrier.init.shared.b64 [bar], {count};")

    def parity(self, parity, form="test_wait"):
        """Answer of a parity test."""
        self.do(f"mbarrier.{form}.parity.shared.b64 %p, [bar], {parity};")
        return self.answer()

    def state(self, number, form="test_wait"):
        """Answer of a test with the state that arrive `number` returned."""
        self.do(f"mbarrier.{form}.shared.b64 %p, [bar], %s{number};")
        return self.answer()

    def answer(self):
        """%p as an answer."""
        self.do("selp.b32 %t0, 1, 0, %p;")
        return self._store()

    def _store(self):
        self.do(f"st.global.u8 [%out+{self.answers}], %t0;")
        self.answers += 1
        return self

    def arrive(self, form="arrive", operands=""):
        """An arrival whose state is kept."""
        self.do(f"mbarrier.{form}.shared.b64 %s{self.states}, [bar]{operands};")
        self.states += 1
        return self

    def pending(self, number):
        """The pending count in a state, as an answer."""
        self.do(f"mbarrier.pending_count.b64 %t0, %s{number};")
        return self._store()

    def tx(self, what, amount):
        return self.do(f"mbarrier.{what}.relaxed.cta.shared::cta.b64 [bar], {amount};")

    def case(self, name, title, section, breaks=None):
        body = (f"  .shared .align 8 .b64 bar;\n  .reg .b32 %t<2>;\n  .reg .b64 %s<{max(self.states, 1)}>, %out;\n  .reg .pred %p;\n"
                "  ld.param.u64 %out, [out_answers];\n" + "\n".join(self.lines) + "\n  mbarrier.inval.shared.b64 [bar];\n  ret;")
        freeform("barrier/" + name, title, section, body, [], [output("answers", "u8", self.answers)], block=[1, 1, 1],
                 breaks=breaks)


Script().init(1).parity(0).parity(1).arrive().parity(0).parity(1).state(0).arrive().parity(0).parity(1).state(1).arrive().parity(0).parity(1).case(
    "parity", "A fresh barrier passes parity 1 and blocks parity 0; each phase turns it round", MBAR + ".test_wait; Phase of the mbarrier object")
Script().init(3).arrive().state(0).parity(0).arrive().state(1).arrive().state(0).state(1).state(2).parity(0).parity(1).arrive().state(3).state(2).case(
    "count", "Three arrivals complete a phase, for the states of all three; the next phase needs three again", MBAR + ".arrive")
Script().init(5).arrive("arrive", ", 2").state(0).arrive("arrive", ", 3").state(1).parity(0).arrive("arrive", ", 4").parity(1).arrive().parity(1).case(
    "arrive_count", "Arrivals with a count", MBAR + ".arrive")
Script().init(6).arrive("arrive.noComplete.release.cta", ", 1").pending(0).arrive("arrive.noComplete.release.cta", ", 3").pending(1).arrive(
    "arrive.noComplete.release.cta", ", 1").pending(2).parity(0).arrive().parity(0).arrive("arrive.noComplete.release.cta", ", 2").pending(4).case(
    "pending_count", "The pending count before an arrival, from the state it returns", MBAR + ".pending_count; " + MBAR + ".arrive")
Script().init(3).arrive("arrive_drop").parity(0).arrive().parity(0).arrive().parity(0).arrive().parity(1).arrive().parity(1).case(
    "arrive_drop", "A dropped arrival counts in this phase and is not expected in later ones", MBAR + ".arrive_drop")
Script().init(6).arrive("arrive_drop.noComplete.release.cta", ", 2").pending(0).arrive("arrive", ", 4").parity(0).arrive("arrive.noComplete.release.cta", ", 1").pending(
    2).arrive("arrive", ", 3").parity(1).case("arrive_drop_count", "arrive_drop with a count; the pending count of the next phase", MBAR + ".arrive_drop")
Script().init(1).tx("expect_tx", 64).arrive().state(0).tx("complete_tx", 16).state(0).tx("complete_tx", 48).state(0).parity(0).parity(1).case(
    "expect_tx", "A phase waits for its transaction bytes after the last arrival", MBAR + ".expect_tx; " + MBAR + ".complete_tx")
Script().init(1).tx("complete_tx", 32).parity(0).tx("expect_tx", 32).parity(0).arrive().parity(0).parity(1).case(
    "complete_first", "Bytes that complete before they are expected", MBAR + ".complete_tx; Phase Completion of the mbarrier object")
Script().init(2).arrive("arrive.expect_tx", ", 128").state(0).tx("complete_tx", 128).state(0).arrive().state(0).state(1).parity(0).case(
    "arrive_expect_tx", "arrive.expect_tx: bytes first, then the last arrival", MBAR + ".arrive")
Script().init(1).arrive().parity(0).tx("expect_tx", 16).parity(0).arrive().parity(1).tx("complete_tx", 16).parity(1).case(
    "late_expect", "An expectation after the last arrival belongs to the next phase", MBAR + ".expect_tx; Phase Completion of the mbarrier object")
Script().init(2).tx("expect_tx", 100).arrive("arrive_drop.expect_tx", ", 28").parity(0).tx("complete_tx", 128).parity(0).arrive().parity(0).arrive().parity(1).case(
    "drop_expect_tx", "arrive_drop.expect_tx", MBAR + ".arrive_drop")
Script().init(1).arrive().do("mbarrier.inval.shared.b64 [bar];").init(2).parity(0).parity(1).arrive().parity(0).arrive().parity(0).parity(1).case(
    "reinit", "A barrier that is invalidated and initialised again starts at phase 0", MBAR + ".inval; " + MBAR + ".init")
Script().init(1).parity(1, "try_wait").arrive().parity(0, "try_wait").state(0, "try_wait").do(
    "mbarrier.arrive.relaxed.cta.shared.b64 _, [bar];").parity(1, "try_wait").do("mbarrier.test_wait.parity.relaxed.cta.shared::cta.b64 %p, [bar], 1;").answer().case("try_wait_done", "try_wait on completed phases; relaxed forms", MBAR + ".try_wait")
Script().init(2).tx("complete_tx", 16).arrive("arrive", ", 2").parity(0).tx("expect_tx", 16).parity(0).parity(1).arrive().parity(0).parity(1).arrive().parity(1).case(
    "expect_completes", "An expectation that brings the tx-count back to zero when no arrivals are pending", MBAR + ".expect_tx; Phase Completion of the mbarrier object")
Script().init(1).tx("complete_tx", 1000).tx("expect_tx", 1049000).arrive().parity(0).tx("complete_tx", 1000000).parity(0).tx("complete_tx", 48000).parity(0).case(
    "large_tx", "More bytes in one expectation than the tx-count may reach, from a count below zero", MBAR + ".expect_tx; Contents of the mbarrier object",
    breaks="the tx-count leaves its range")
Script().init(1).tx("expect_tx", 1000).tx("complete_tx", 1049000).arrive().parity(0).case(
    "large_complete_tx", "More bytes complete at once than the tx-count may reach, to a count above the least", MBAR + ".complete_tx; Contents of the mbarrier object",
    breaks="the tx-count leaves its range")

HEAD = """
  .shared .align 8 .b64 bar;
  .shared .align 16 .b8 tile[4096];
  .reg .b32 %t<10>, %i;
  .reg .b64 %in, %out, %x, %s;
  .reg .pred %p, %q;
  mov.u32 %i, %tid.x;
  setp.eq.u32 %p, %i, 0;
"""


def store(register, width=4):
    return f"\n  ld.param.u64 %out, [out_d];\n  mul.wide.u32 %x, %i, {width};\n  add.s64 %out, %out, %x;\n  st.global.b32 [%out], {register};\n  ret;"


freeform("barrier/phases", "128 threads exchange values over ten phases", MBAR + ".arrive; " + MBAR + ".try_wait", HEAD + """
  @%p mbarrier.init.shared.b64 [bar], 128;
  bar.sync 0;
  mov.u32 %t0, %i;
  mov.u32 %t1, 0;
  mov.u32 %t2, tile;
phase:
  and.b32 %t3, %t1, 1;
  shl.b32 %t4, %t3, 9;
  add.u32 %t4, %t4, %t2;
  mad.lo.u32 %t5, %i, 4, %t4;
  st.shared.b32 [%t5], %t0;
  mbarrier.arrive.shared.b64 _, [bar];
wait:
  mbarrier.try_wait.parity.shared.b64 %q, [bar], %t3;
  @!%q bra wait;
  add.u32 %t6, %i, 37;
  and.b32 %t6, %t6, 127;
  mad.lo.u32 %t6, %t6, 4, %t4;
  ld.shared.b32 %t7, [%t6];
  mad.lo.u32 %t0, %t0, 3, %t7;
  add.u32 %t1, %t1, 1;
  setp.lt.u32 %q, %t1, 10;
  @%q bra phase;
""" + store("%t0"), [], [output("d", "u32", 128)], block=[128, 1, 1])
freeform("barrier/ring", "A producer warp and a consumer warp on a full and an empty barrier", MBAR + ".try_wait; Phase of the mbarrier object", HEAD + """
  .shared .align 8 .b64 empty;
  @%p mbarrier.init.shared.b64 [bar], 32;
  @%p mbarrier.init.shared.b64 [empty], 1;
  bar.sync 0;
  mov.u32 %t0, 0;
  mov.u32 %t8, 0;
  mov.u32 %t2, tile;
  and.b32 %t3, %i, 31;
  mad.lo.u32 %t4, %t3, 4, %t2;
  setp.ge.u32 %p, %i, 32;
  @%p bra consume;
produce:
  and.b32 %t1, %t0, 1;
  xor.b32 %t1, %t1, 1;
room:
  mbarrier.try_wait.parity.shared.b64 %q, [empty], %t1;
  @!%q bra room;
  mad.lo.u32 %t5, %t0, 100, %i;
  st.shared.b32 [%t4], %t5;
  mbarrier.arrive.shared.b64 _, [bar];
  add.u32 %t0, %t0, 1;
  setp.lt.u32 %q, %t0, 8;
  @%q bra produce;
  mov.u32 %t8, %t5;
  bra.uni done;
consume:
  and.b32 %t1, %t0, 1;
item:
  mbarrier.try_wait.parity.shared.b64 %q, [bar], %t1;
  @!%q bra item;
  ld.shared.b32 %t5, [%t4];
  mad.lo.u32 %t8, %t8, 5, %t5;
  bar.warp.sync 0xffffffff;
  setp.eq.u32 %q, %t3, 0;
  @%q mbarrier.arrive.shared.b64 _, [empty];
  add.u32 %t0, %t0, 1;
  setp.lt.u32 %q, %t0, 8;
  @%q bra consume;
done:
""" + store("%t8"), [], [output("d", "u32", 64)], block=[64, 1, 1])
freeform("barrier/remote_arrive", "Arrivals from the other CTA of a cluster", MBAR + ".arrive; Data Movement and Conversion Instructions: mapa", HEAD + """
  mov.u32 %t0, %cluster_ctarank;
  @%p mbarrier.init.shared.b64 [bar], 33;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  xor.b32 %t1, %t0, 1;
  mov.u32 %t2, bar;
  mapa.shared::cluster.u32 %t3, %t2, %t1;
  mov.u32 %t4, tile;
  mad.lo.u32 %t4, %i, 4, %t4;
  mapa.shared::cluster.u32 %t5, %t4, %t1;
  mad.lo.u32 %t6, %t0, 100, %i;
  st.shared::cluster.b32 [%t5], %t6;
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%t3];
  mbarrier.test_wait.parity.shared.b64 %q, [bar], 0;
  selp.b32 %t7, 1000, 0, %q;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  @%p mbarrier.arrive.shared.b64 _, [bar];
wait:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [bar], 0;
  @!%q bra wait;
  ld.shared.b32 %t8, [%t4];
  add.u32 %t8, %t8, %t7;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u32 %t9, %ctaid.x;
  mad.lo.u32 %i, %t9, 32, %i;
""" + store("%t8"), [], [output("d", "u32", 64)], grid=[2, 1, 1], cluster=[2, 1, 1], directives=".reqnctapercluster 2, 1, 1")
for form, count in (("noinc", 32), ("inc", 32)):
    suffix = ".noinc" if form == "noinc" else ""
    extra = "" if form == "noinc" else "\n  mbarrier.arrive.shared.b64 _, [bar];"
    freeform(f"barrier/cp_async_arrive_{form}", f"cp.async.mbarrier.arrive{suffix}: the barrier waits for the copies", MBAR + "; cp.async.mbarrier.arrive", HEAD + f"""
  @%p mbarrier.init.shared.b64 [bar], {count};
  bar.sync 0;
  ld.param.u64 %in, [in_m];
  mul.wide.u32 %x, %i, 16;
  add.s64 %in, %in, %x;
  mov.u32 %t0, tile;
  mad.lo.u32 %t1, %i, 16, %t0;
  cp.async.cg.shared.global [%t1], [%in], 16;
  cp.async.mbarrier.arrive{suffix}.shared.b64 [bar];{extra}
wait:
  mbarrier.try_wait.parity.shared.b64 %q, [bar], 0;
  @!%q bra wait;
  xor.b32 %t2, %i, 21;
  mad.lo.u32 %t1, %t2, 16, %t0;
  ld.shared.b32 %t3, [%t1];
""" + store("%t3"), [random_bits("m", "b32", 128, 141)], [output("d", "b32", 32)])

# ---- named barriers ------------------------------------------------------------------------------------------------------

BAR = SYNC + "bar, barrier"
freeform("barrier/named", "Two groups of warps on their own named barriers, with counts", BAR, HEAD + """
  mov.u32 %t0, tile;
  mad.lo.u32 %t1, %i, 4, %t0;
  mul.lo.u32 %t2, %i, 7;
  st.shared.b32 [%t1], %t2;
  setp.lt.u32 %q, %i, 64;
  @%q bra low;
  barrier.sync 3, 128;
  sub.u32 %t3, 255, %i;
  bra.uni read;
low:
  bar.sync 1, 64;
  sub.u32 %t3, 63, %i;
read:
  mad.lo.u32 %t1, %t3, 4, %t0;
  ld.shared.b32 %t4, [%t1];
  bar.sync 0;
""" + store("%t4"), [], [output("d", "u32", 192)], block=[192, 1, 1])
freeform("barrier/arrive_sync", "bar.arrive by the producers, bar.sync by the consumers", BAR, HEAD + """
  mov.u32 %t0, tile;
  and.b32 %t1, %i, 63;
  mad.lo.u32 %t2, %t1, 4, %t0;
  mov.u32 %t4, 5;
  mov.u32 %t5, 0;
  setp.lt.u32 %q, %i, 64;
  @!%q bra consume;
  mad.lo.u32 %t3, %i, 11, 3;
  st.shared.b32 [%t2], %t3;
  bar.arrive %t4, 128;
  bra.uni done;
consume:
  bar.sync %t4, 128;
  xor.b32 %t1, %t1, 63;
  mad.lo.u32 %t2, %t1, 4, %t0;
  ld.shared.b32 %t5, [%t2];
done:
""" + store("%t5"), [], [output("d", "u32", 128)], block=[128, 1, 1])
freeform("barrier/reduction", "bar.red: counts and logic over a CTA, negated predicates, and over part of one", BAR, HEAD + """
  and.b32 %t0, %i, 3;
  setp.eq.u32 %p, %t0, 1;
  bar.red.popc.u32 %t1, 0, %p;
  bar.red.popc.u32 %t2, 0, !%p;
  bar.red.and.pred %q, 0, %p;
  selp.b32 %t3, 1, 0, %q;
  bar.red.or.pred %q, 0, %p;
  selp.b32 %t4, 2, 0, %q;
  setp.lt.u32 %p, %i, 1000;
  bar.red.and.pred %q, 0, %p;
  selp.b32 %t5, 4, 0, %q;
  bar.red.or.pred %q, 0, !%p;
  selp.b32 %t6, 8, 0, %q;
  setp.lt.u32 %q, %i, 64;
  mov.u32 %t7, 0;
  setp.gt.u32 %p, %i, 40;
  @!%q bra done;
  barrier.red.popc.u32 %t7, 2, 64, %p;
done:
  or.b32 %t3, %t3, %t4;
  or.b32 %t3, %t3, %t5;
  or.b32 %t3, %t3, %t6;
  mad.lo.u32 %t1, %t1, 1000, %t2;
  mad.lo.u32 %t1, %t7, 1000000, %t1;
  shl.b32 %t3, %t3, 28;
  or.b32 %t1, %t1, %t3;
""" + store("%t1"), [], [output("d", "b32", 96)], block=[96, 1, 1])
freeform("barrier/cluster", "barrier.cluster: arrive, work, wait; over three rounds", SYNC + "barrier.cluster", HEAD + """
  mov.u32 %t0, %cluster_ctarank;
  mov.u32 %t1, tile;
  mad.lo.u32 %t1, %i, 4, %t1;
  mad.lo.u32 %t2, %t0, 50, %i;
  mov.u32 %t3, 0;
round:
  st.shared.b32 [%t1], %t2;
  barrier.cluster.arrive.release;
  add.u32 %t4, %t0, 1;
  and.b32 %t4, %t4, 3;
  mapa.shared::cluster.u32 %t5, %t1, %t4;
  barrier.cluster.wait.acquire;
  ld.shared::cluster.b32 %t6, [%t5];
  barrier.cluster.arrive;
  mad.lo.u32 %t2, %t2, 3, %t6;
  barrier.cluster.wait;
  add.u32 %t3, %t3, 1;
  setp.lt.u32 %q, %t3, 3;
  @%q bra round;
  mov.u32 %t9, %ctaid.x;
  mad.lo.u32 %i, %t9, 32, %i;
""" + store("%t2"), [], [output("d", "u32", 128)], grid=[4, 1, 1], cluster=[4, 1, 1], directives=".reqnctapercluster 4, 1, 1")
freeform("barrier/named_twice", "A warp that arrives twice counts twice, and the barrier's next use starts from nothing", BAR, HEAD + """
  mov.u32 %t0, tile;
  mad.lo.u32 %t1, %i, 4, %t0;
  mad.lo.u32 %t2, %i, 7, 1;
  st.shared.b32 [%t1], %t2;
  setp.lt.u32 %q, %i, 32;
  @!%q bra consume;
  bar.arrive 3, 96;
  bar.arrive 3, 96;
  bar.sync 4, 64;
  bar.arrive 3, 64;
  mov.u32 %t5, 9;
  bra.uni done;
consume:
  bar.sync 3, 96;
  xor.b32 %t1, %i, 32;
  mad.lo.u32 %t1, %t1, 4, %t0;
  ld.shared.b32 %t5, [%t1];
  bar.sync 4, 64;
  bar.sync 3, 64;
done:
""" + store("%t5"), [], [output("d", "u32", 64)], block=[64, 1, 1])
freeform("barrier/named_exited", "Threads that have exited are not waited for, and do not count in a reduction", BAR, HEAD + """
  ld.param.u64 %out, [out_d];
  mul.wide.u32 %x, %i, 4;
  add.s64 %out, %out, %x;
  mov.u32 %t5, 77;
  st.global.b32 [%out], %t5;
  shr.u32 %t1, %i, 5;
  setp.eq.u32 %q, %t1, 1;
  @%q exit;
  setp.gt.u32 %q, %i, 117;
  @%q exit;
  barrier.sync 2;
  setp.ne.u32 %q, %i, 0;
  barrier.red.popc.u32 %t3, 2, %q;
  st.global.b32 [%out], %t3;
  ret;""", [], [output("d", "u32", 128)], block=[128, 1, 1])
