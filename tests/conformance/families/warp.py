"""Warp-wide instructions: shuffles, votes, match, redux, elect, lane masks."""

from families.builder import Op, choice, elementwise, explicit, index, random_bits

SYNC = "Parallel Synchronization and Communication Instructions: "
MOVE = "Data Movement and Conversion Instructions: "
lanes = index("a", "u32", 64, start=1)


def shuffle(mode, lane, clamp, label, mask="0xffffffff"):
    """The value, plus 1000 where the source lane was in range."""
    return Op(f"shfl.sync.{mode}.b32 %t0|%p, $a, {lane}, {clamp:#x}, {mask};\nselp.b32 %t1, 1000, 0, %p;\nadd.u32 $d, %t0, %t1;",
              "u32", name=label)


SEGMENTS = [("w32", 0x1F, 0), ("w16", 0x101F, 0x1000), ("w8", 0x181F, 0x1800), ("odd", 0x0A13, 0x0A03)]
for mode in ("idx", "up", "down", "bfly"):
    ops = [shuffle(mode, lane, up if mode == "up" else other, f"{mode}_{label}_{lane}")
           for label, other, up in SEGMENTS for lane in (0, 1, 5, 16, 31, 33)]
    elementwise(f"warp/shfl_{mode}", f"shfl.{mode}: segments, clamps, out-of-range lanes, the predicate", MOVE + "shfl.sync", [lanes], ops)
elementwise("warp/shfl_lanes", "shfl with a different lane, and a different clamp, in every lane", MOVE + "shfl.sync",
            [lanes, random_bits("b", "b32", 64, 101, keep=0x3F), choice("c", "b32", 64, 102, [0x1F, 0x101F, 0x0C17, 0x1F1F, 0x0007, 0])],
            [Op(f"shfl.sync.{m}.b32 %t0|%p, $a, $b, $c, -1;\nselp.b32 %t1, 1000, 0, %p;\nadd.u32 $d, %t0, %t1;", "u32", name=m)
             for m in ("idx", "up", "down", "bfly")])
elementwise("warp/shfl_members", "shfl among part of a warp, on two paths", MOVE + "shfl.sync", [lanes],
            [Op("and.b32 %t0, %i, 31;\nsetp.lt.u32 %p, %t0, 12;\nmov.u32 $d, 0;\n@%p shfl.sync.bfly.b32 $d, $a, 1, 0x1f, 0x00000fff;\n"
                "@!%p shfl.sync.idx.b32 $d, $a, 20, 0x1f, 0xfffff000;", "u32", name="two_paths"),
             Op("and.b32 %t0, %i, 1;\nsetp.eq.u32 %p, %t0, 0;\nmov.u32 $d, 7;\n@%p shfl.sync.down.b32 $d, $a, 2, 0x1f, 0x55555555;",
                "u32", name="even_lanes")])
bit = choice("a", "b32", 128, 103, [0, 1])
group = explicit("b", "b32", [[0, 1, 1, 0][i // 32] if i % 32 != 9 or i // 32 < 2 else 1 - [0, 1, 1, 0][i // 32] for i in range(128)])
VOTES = [("all", "selp.b32 $d, 1, 0, %q;"), ("any", "selp.b32 $d, 1, 0, %q;"), ("uni", "selp.b32 $d, 1, 0, %q;")]
elementwise("warp/vote", "vote all, any, uni and ballot; negated predicates", SYNC + "vote.sync", [bit, group],
            [Op(f"setp.ne.u32 %p, ${x}, 0;\nvote.sync.{k}.pred %q, {n}%p, 0xffffffff;\n{store}", "u32", name=f"{k}_{x}{'_not' if n else ''}")
             for x in "ab" for k, store in VOTES for n in ("", "!")]
            + [Op(f"setp.ne.u32 %p, ${x}, 0;\nvote.sync.ballot.b32 $d, {n}%p, 0xffffffff;", "b32", name=f"ballot_{x}{'_not' if n else ''}")
               for x in "ab" for n in ("", "!")])
elementwise("warp/vote_members", "vote among part of a warp: the others do not count", SYNC + "vote.sync", [bit],
            [Op("and.b32 %t0, %i, 31;\nsetp.ge.u32 %q, %t0, 20;\nsetp.ne.u32 %p, $a, 0;\nmov.b32 $d, 0;\n"
                "@%q vote.sync.ballot.b32 $d, %p, 0xfff00000;", "b32", name="ballot_high"),
             Op("and.b32 %t0, %i, 31;\nsetp.lt.u32 %q, %t0, 20;\nsetp.ne.u32 %p, $a, 0;\nmov.b32 $d, 0;\n@%q bra low;\nbra.uni done;\n"
                "low:\nvote.sync.any.pred %p, %p, 0x000fffff;\nselp.b32 $d, 1, 2, %p;\ndone:", "b32", name="any_low")])
few = choice("a", "b32", 64, 104, [5, 6, 0x80000000, 0xFFFFFFFF])
long = choice("e", "b64", 64, 105, [5, 0x500000005, 0x8000000000000005])
same = explicit("c", "b32", [77] * 32 + [78] * 31 + [77])
elementwise("warp/match", "match.any and match.all on 32 and 64 bits", SYNC + "match.sync", [few, long, same],
            [Op("match.any.sync.b32 $d, $a, 0xffffffff;", "b32", name="any_b32"), Op("match.any.sync.b64 $d, $e, 0xffffffff;", "b32", name="any_b64"),
             Op("match.all.sync.b32 %t0|%p, $c, 0xffffffff;\nselp.b32 %t1, 1, 0, %p;\nxor.b32 $d, %t0, %t1;", "b32", name="all_b32"),
             Op("setp.ge.u32 %q, %i, 32;\nselp.b64 %u0, 3, 4, %q;\nmatch.all.sync.b64 %t0|%p, %u0, 0xffffffff;\nselp.b32 $d, %t0, 9, %p;", "b32",
                name="all_b64")])
number = random_bits("a", "b32", 64, 106)
elementwise("warp/redux", "redux over a warp and over part of one", SYNC + "redux.sync", [number],
            [Op(f"redux.sync.{k} $d, $a, 0xffffffff;", "b32") for k in ("add.s32", "add.u32", "min.s32", "min.u32", "max.s32", "max.u32",
                                                                     "and.b32", "or.b32", "xor.b32")]
            + [Op("and.b32 %t0, %i, 3;\nsetp.eq.u32 %p, %t0, 1;\nmov.b32 $d, 0;\n@%p redux.sync.add.u32 $d, $a, 0x22222222;", "b32", name="add_quarter")])
elementwise("warp/elect", "elect.sync: the leader of a whole warp and of parts", SYNC + "elect.sync", [lanes],
            [Op("elect.sync %t0|%p, 0xffffffff;\nselp.b32 %t1, 100, 0, %p;\nadd.u32 $d, %t0, %t1;", "u32", name="whole"),
             Op("and.b32 %t2, %i, 31;\nsetp.ge.u32 %q, %t2, 11;\nmov.b32 $d, 99;\n@!%q bra skip;\nelect.sync %t0|%p, 0xfffff800;\n"
                "selp.b32 %t1, 100, 0, %p;\nadd.u32 $d, %t0, %t1;\nskip:", "u32", name="high_lanes"),
             Op("elect.sync _|%p, 0xffffffff;\nselp.b32 $d, 1, 0, %p;", "u32", name="sink")])
SPECIAL = "Special Registers: "
elementwise("warp/lane_registers", "%laneid and the lane masks", SPECIAL + "%laneid; " + SPECIAL + "%lanemask_lt", [lanes],
            [Op(f"mov.u32 $d, %{k};", "b32", name=k) for k in ("laneid", "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt")]
            + [Op("activemask.b32 $d;", "b32", name="activemask")])
# Groups of eight lanes, each with its own mask in %t3.
OWN_GROUP = "and.b32 %t3, %i, 24;\nmov.b32 %t2, 0xff;\nshl.b32 %t3, %t2, %t3;\n"
TILE = "mov.u32 %t2, tile;\nmad.lo.u32 %t1, %i, 4, %t2;\nxor.b32 %t0, %i, 5;\nmad.lo.u32 %t0, %t0, 4, %t2;\n"
elementwise("warp/groups", "One instruction executed by groups of lanes, each with a member mask of its own", SYNC + "bar.warp.sync", [lanes],
            [Op(OWN_GROUP + TILE + "st.shared.u32 [%t1], $a;\nbar.warp.sync %t3;\nld.shared.u32 $d, [%t0];", "u32", name="bar_warp_sync"),
             Op(OWN_GROUP + "shfl.sync.bfly.b32 $d, $a, 3, 0x181f, %t3;", "u32", name="shfl"),
             Op(OWN_GROUP + "redux.sync.add.u32 $d, $a, %t3;", "u32", name="redux"),
             Op(OWN_GROUP + "setp.gt.u32 %p, $a, 20;\nvote.sync.ballot.b32 $d, %p, %t3;", "b32", name="ballot"),
             Op(OWN_GROUP + "and.b32 %t2, $a, 3;\nmatch.any.sync.b32 $d, %t2, %t3;", "b32", name="match"),
             Op(OWN_GROUP + TILE + "bar.warp.sync %t3;\nst.shared.u32 [%t1], %t0;\nand.b32 %t2, %i, 1;\nsetp.eq.u32 %p, %t2, 0;\n"
                "setp.lt.u32 %q, %i, 16;\n@%q bra meet;\n@%p bra even;\nbar.warp.sync %t3;\nbra met;\neven:\nbar.warp.sync %t3;\nbra met;\n"
                "meet:\nbar.warp.sync %t3;\nmet:\nld.shared.u32 $d, [%t0];\nsub.u32 $d, $d, %t1;", "u32", name="at_places_of_their_own")],
            prologue=".shared .align 16 .b32 tile[64];")
