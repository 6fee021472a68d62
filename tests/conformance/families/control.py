"""Divergence and reconvergence, predicated execution, calls, grids, and instructions that only have to be accepted."""

from families.builder import Op, elementwise, explicit, freeform, index, output, random_bits

FLOW = "Control Flow Instructions: "
SYNC = "Parallel Synchronization and Communication Instructions: "
lanes = index("a", "u32", 64)

elementwise("control/predicated", "Instructions under a predicate and under its negation; a write that does not happen", "Predicated Execution",
            [random_bits("a", "b32", 64, 111), random_bits("b", "b32", 64, 112)],
            [Op("setp.lt.s32 %p, $a, $b;\nmov.b32 $d, 5;\n@%p add.s32 $d, $a, $b;\n@!%p sub.s32 $d, $a, $b;", "b32", name="both"),
             Op("setp.lt.u32 %p, $a, 0x40000000;\nmov.b32 $d, 5;\n@%p mov.b32 $d, $b;", "b32", name="kept"),
             Op("setp.lt.s32 %p, $a, 0;\nsetp.lt.s32 %q, $b, 0;\nand.pred %p, %p, %q;\nnot.pred %q, %p;\nselp.b32 %t0, 1, 0, %p;\n"
                "selp.b32 %t1, 2, 0, %q;\nor.b32 $d, %t0, %t1;", "b32", name="logic"),
             Op("setp.lt.s32 %p, $a, 0;\nsetp.lt.s32 %q, $b, 0;\nxor.pred %p, %p, %q;\nselp.b32 $d, $a, $b, %p;", "b32", name="xor_selp")])
elementwise("control/loop_per_lane", "Loops whose trip count differs in every lane, also zero", FLOW + "bra", [lanes],
            [Op("and.b32 %t0, $a, 31;\nmov.b32 $d, 0;\nmov.b32 %t1, 0;\nloop:\nsetp.ge.u32 %p, %t1, %t0;\n@%p bra end;\nmad.lo.u32 $d, $d, 3, %t1;\n"
                "add.u32 %t1, %t1, 1;\nbra loop;\nend:", "b32", name="top_test"),
             Op("mul.lo.u32 %t0, $a, 7;\nand.b32 %t0, %t0, 15;\nmov.b32 $d, 1;\nrepeat:\nadd.u32 $d, $d, $a;\nadd.s32 %t0, %t0, -1;\n"
                "setp.gt.s32 %p, %t0, 0;\n@%p bra repeat;", "b32", name="bottom_test"),
             Op("add.u32 %t0, $a, 1;\nmov.b32 $d, 0;\ncollatz:\nsetp.le.u32 %p, %t0, 1;\n@%p bra one;\nand.b32 %t1, %t0, 1;\nsetp.eq.u32 %q, %t1, 0;\n"
                "@%q bra even;\nmad.lo.u32 %t0, %t0, 3, 1;\nbra next;\neven:\nshr.u32 %t0, %t0, 1;\nnext:\nadd.u32 $d, $d, 1;\nbra collatz;\none:",
                "b32", name="collatz")])
elementwise("control/nested", "Nested conditions and loops, with a break out of the inner loop", FLOW + "bra", [lanes],
            [Op("and.b32 %t0, $a, 1;\nsetp.eq.u32 %p, %t0, 1;\n@%p bra odd;\nand.b32 %t0, $a, 2;\nsetp.eq.u32 %q, %t0, 2;\n@%q bra two;\nmov.b32 $d, 10;\n"
                "bra joined;\ntwo:\nmov.b32 $d, 20;\nbra joined;\nodd:\nsetp.gt.u32 %q, $a, 16;\nmov.b32 $d, 30;\n@%q mov.b32 $d, 40;\njoined:\nadd.u32 $d, $d, $a;",
                "b32", name="branches"),
             Op("and.b32 %t0, $a, 7;\nmov.b32 $d, 0;\nouter:\nmov.b32 %t1, 0;\ninner:\nadd.u32 $d, $d, 1;\nadd.u32 %t2, %t1, %t0;\nsetp.eq.u32 %p, %t2, 5;\n"
                "@%p bra broken;\nadd.u32 %t1, %t1, 1;\nsetp.lt.u32 %q, %t1, 4;\n@%q bra inner;\nbroken:\nadd.u32 $d, $d, 100;\nadd.s32 %t0, %t0, -1;\n"
                "setp.ge.s32 %p, %t0, 0;\n@%p bra outer;", "b32", name="break_inner")])
elementwise("control/converged_after", "A shuffle over the whole warp after divergent paths, with a warp barrier between",
            FLOW + "bra; Parallel Synchronization and Communication Instructions: bar.warp.sync", [lanes],
            [Op("and.b32 %t0, $a, 3;\nmov.b32 %t1, $a;\nspin:\nsetp.eq.u32 %p, %t0, 0;\n@%p bra out;\nadd.u32 %t1, %t1, 100;\nadd.s32 %t0, %t0, -1;\nbra spin;\n"
                "out:\nbar.warp.sync 0xffffffff;\nshfl.sync.down.b32 $d, %t1, 3, 0x1f, 0xffffffff;", "b32", name="after_loop"),
             Op("and.b32 %t0, $a, 31;\nsetp.lt.u32 %p, %t0, 8;\nmov.b32 $d, 0;\n@!%p bra rest;\nvote.sync.ballot.b32 $d, %p, 0xff;\n"
                "bar.warp.sync 0xff;\nrest:\nbar.warp.sync 0xffffffff;\nredux.sync.add.s32 $d, $d, 0xffffffff;", "b32", name="part_of_warp")])
elementwise("control/elected_loop", "One elected lane loops and writes to shared memory while the others wait at a warp barrier",
            "Parallel Synchronization and Communication Instructions: elect.sync", [lanes],
            [Op("shr.u32 %t0, %i, 5;\nshl.b32 %t0, %t0, 7;\nmov.u32 %t1, table;\nadd.u32 %t0, %t0, %t1;\nelect.sync _|%p, 0xffffffff;\n@!%p bra wait;\nmov.b32 %t1, 0;\n"
                "fill:\nmul.lo.u32 %t2, %t1, %t1;\nadd.u32 %t2, %t2, %i;\nshl.b32 %t3, %t1, 2;\nadd.u32 %t3, %t3, %t0;\nst.shared.b32 [%t3], %t2;\nadd.u32 %t1, %t1, 1;\n"
                "setp.lt.u32 %q, %t1, 32;\n@%q bra fill;\nwait:\nbar.warp.sync 0xffffffff;\nand.b32 %t1, %i, 31;\nshl.b32 %t1, %t1, 2;\nadd.u32 %t1, %t1, %t0;\n"
                "ld.shared.b32 $d, [%t1];", "b32", name="squares")], prologue=".shared .align 4 .b8 table[256];")
elementwise("control/lane_waits_for_lane", "A lane that spins on a flag another lane of its warp sets later in the program",
            "Programming Model: Independent Thread Scheduling", [lanes],
            [Op("mov.u32 %t0, flag;\nshr.u32 %t1, %i, 5;\nshl.b32 %t1, %t1, 2;\nadd.u32 %t0, %t0, %t1;\nand.b32 %t1, %i, 31;\nsetp.eq.u32 %p, %t1, 0;\n@%p st.volatile.shared.b32 [%t0], 0;\n"
                "bar.warp.sync 0xffffffff;\nsetp.eq.u32 %p, %t1, 31;\n@!%p bra others;\nspin:\nld.volatile.shared.b32 %t2, [%t0];\nsetp.eq.u32 %q, %t2, 0;\n@%q bra spin;\n"
                "mov.b32 $d, %t2;\nbra both;\nothers:\nsetp.eq.u32 %q, %t1, 5;\n@%q st.volatile.shared.b32 [%t0], 42;\nmov.b32 $d, %t1;\nboth:\nbar.warp.sync 0xffffffff;",
                "b32", name="flag")], prologue=".shared .align 4 .b8 flag[8];")
elementwise("control/exit_some", "Lanes that return early; the rest shuffle among themselves", FLOW + "exit; " + FLOW + "ret", [lanes],
            [Op("mov.b32 $d, $a;", "b32", name="before"),
             Op("ld.param.u64 %address, [out_after];\nmul.wide.u32 %offset, %i, 4;\nadd.s64 %address, %address, %offset;\nst.global.b32 [%address], 1234;\nand.b32 %t0, %i, 3;\n"
                "setp.eq.u32 %p, %t0, 1;\n@%p exit;\nshfl.sync.idx.b32 %t1, $a, 2, 0x1f, 0xdddddddd;\nadd.u32 $d, %t1, $a;", "b32", name="after")])
elementwise("control/brx", "Indexed branches", FLOW + "brx.idx", [lanes],
            [Op("and.b32 %t0, $a, 3;\nmov.b32 $d, 0;\ntargets: .branchtargets zero, one, two, one;\nbrx.idx %t0, targets;\nzero:\nmov.b32 $d, 100;\nbra end;\none:\nmov.b32 $d, 200;\n"
                "bra end;\ntwo:\nmov.b32 $d, 300;\nend:\nadd.u32 $d, $d, $a;", "b32", name="table")])
elementwise("control/call", "Calls of a function with parameters, also from divergent code", FLOW + "call", [lanes],
            [Op("{\n.param .b32 x;\n.param .b32 y;\n.param .b32 result;\nst.param.b32 [x], $a;\nst.param.b32 [y], 3;\ncall.uni (result), scaled, (x, y);\nld.param.b32 $d, [result];\n}",
                "b32", name="uniform"),
             Op("and.b32 %t0, $a, 1;\nsetp.eq.u32 %p, %t0, 1;\nmov.b32 $d, 7;\n@!%p bra skip;\n{\n.param .b32 x;\n.param .b32 y;\n.param .b32 result;\nst.param.b32 [x], $a;\n"
                "st.param.b32 [y], $a;\ncall (result), scaled, (x, y);\nld.param.b32 $d, [result];\n}\nskip:", "b32", name="divergent")],
            globals_=""".func (.param .b32 result) scaled(.param .b32 x, .param .b32 y)
{
  .reg .b32 %x, %y;
  ld.param.b32 %x, [x];
  ld.param.b32 %y, [y];
  mad.lo.u32 %x, %x, %y, 11;
  st.param.b32 [result], %x;
  ret;
}""")
freeform("control/grid", "%tid, %ntid, %ctaid and %nctaid in three dimensions", "Special Registers: %tid; Special Registers: %ctaid", """
  .reg .b32 %t<12>;
  .reg .b64 %x<3>;
  mov.u32 %t0, %tid.x;
  mov.u32 %t1, %tid.y;
  mov.u32 %t2, %tid.z;
  mov.u32 %t3, %ntid.x;
  mov.u32 %t4, %ntid.y;
  mad.lo.u32 %t5, %t2, %t4, %t1;
  mad.lo.u32 %t5, %t5, %t3, %t0;
  mov.u32 %t6, %ctaid.z;
  mov.u32 %t7, %nctaid.y;
  mov.u32 %t8, %ctaid.y;
  mad.lo.u32 %t6, %t6, %t7, %t8;
  mov.u32 %t7, %nctaid.x;
  mov.u32 %t8, %ctaid.x;
  mad.lo.u32 %t6, %t6, %t7, %t8;
  mov.u32 %t7, %ntid.z;
  mul.lo.u32 %t9, %t3, %t4;
  mul.lo.u32 %t9, %t9, %t7;
  mad.lo.u32 %t9, %t6, %t9, %t5;
  shl.b32 %t10, %t0, 16;
  shl.b32 %t11, %t1, 8;
  or.b32 %t10, %t10, %t11;
  or.b32 %t10, %t10, %t2;
  mov.u32 %t11, %nctaid.z;
  shl.b32 %t11, %t11, 28;
  or.b32 %t10, %t10, %t11;
  shl.b32 %t6, %t6, 20;
  or.b32 %t10, %t10, %t6;
  ld.param.u64 %x0, [out_d];
  mul.wide.u32 %x1, %t9, 4;
  add.s64 %x0, %x0, %x1;
  st.global.b32 [%x0], %t10;
  ret;
""", [], [output("d", "b32", 8 * 3 * 2 * 12)], block=[8, 3, 2], grid=[2, 3, 2])
freeform("control/setmaxnreg", "setmaxnreg moves registers between warpgroups", "Miscellaneous Instructions: setmaxnreg", """
  .reg .b32 %t<4>;
  .reg .b64 %x<3>;
  .reg .pred %p;
  mov.u32 %t0, %tid.x;
  setp.lt.u32 %p, %t0, 128;
  @!%p bra consumer;
  setmaxnreg.dec.sync.aligned.u32 40;
  mad.lo.u32 %t1, %t0, 3, 1;
  bra.uni done;
consumer:
  setmaxnreg.inc.sync.aligned.u32 168;
  mad.lo.u32 %t1, %t0, 5, 2;
done:
  ld.param.u64 %x0, [out_d];
  mul.wide.u32 %x1, %t0, 4;
  add.s64 %x0, %x0, %x1;
  st.global.b32 [%x0], %t1;
  ret;
""", [], [output("d", "u32", 256)], block=[256, 1, 1], directives=".maxntid 256, 1, 1\n.maxnreg 104")
elementwise("control/hints", "Prefetches, fences, nanosleep and pmevent are accepted and change nothing",
            "Data Movement and Conversion Instructions: prefetch; Parallel Synchronization and Communication Instructions: membar, fence", [lanes],
            [Op("ld.param.u64 %u0, [in_a];\nprefetch.global.L1 [%u0];\nprefetch.global.L2 [%u0];\nprefetchu.L1 [%u0];\nfence.acq_rel.cta;\nfence.sc.gpu;\nfence.acq_rel.sys;\n"
                "membar.cta;\nmembar.gl;\nfence.proxy.async;\nfence.proxy.alias;\nnanosleep.u32 20;\npmevent 3;\nmov.b32 $d, $a;", "b32", name="kept")])
elementwise("control/griddepcontrol", "Neither form does anything in a grid that no other depends on and that depends on none", SYNC + "griddepcontrol", [lanes],
            [Op("griddepcontrol.wait;\nadd.u32 $d, $a, 1;", "u32", name="wait"),
             Op("griddepcontrol.launch_dependents;\nadd.u32 $d, $a, 2;\ngriddepcontrol.launch_dependents;", "u32", name="launch_dependents"),
             Op("and.b32 %t0, $a, 1;\nsetp.eq.u32 %p, %t0, 0;\nmov.u32 $d, 5;\n@%p griddepcontrol.wait;\n@%p add.u32 $d, $a, 3;", "u32", name="some_lanes")])
