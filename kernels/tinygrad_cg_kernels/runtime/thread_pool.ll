; The machine code of the pool of threads: a template, which `thread_pool_code` fills with the
; offsets of fields and with what the system has.

declare i32 @tinygrad_cg_acquire(ptr, i32)
declare i32 @tinygrad_cg_acquire_timed(ptr, i64, i32)
declare void @tinygrad_cg_release(ptr)
declare ptr @tinygrad_cg_save_thread()
declare void @tinygrad_cg_restore_thread(ptr)
declare i64 @tinygrad_cg_as_integer(ptr)
declare ptr @tinygrad_cg_from_integer(i64)
$declarations

define internal ptr @record(ptr %pool, i64 %index) alwaysinline {
  %offset = mul i64 %index, $LINE
  %records = getelementptr i8, ptr %pool, i64 $records
  %record = getelementptr i8, ptr %records, i64 %offset
  ret ptr %record
}

; --- one block, and all of them on one thread -------------------------------------------

define internal void @block(i64 %address, i64 %table, i64 %first, i64 %units, i64 %step, i64 %k)
    alwaysinline {
  %start = mul i64 %k, %step
  %rest = sub i64 %units, %start
  %count = call i64 @llvm.smin.i64(i64 %rest, i64 %step)
  %begin = add i64 %first, %start
  %kernel = inttoptr i64 %address to ptr
  call void %kernel(i64 %table, i64 %begin, i64 %count)
  ret void
}
declare i64 @llvm.smin.i64(i64, i64)

define internal void @all_blocks(i64 %address, i64 %table, i64 %first, i64 %units, i64 %step,
                                 i64 %blocks) {
entry:
  %any = icmp sgt i64 %blocks, 0
  br i1 %any, label %loop, label %end
loop:
  %k = phi i64 [0, %entry], [%next, %loop]
  call void @block(i64 %address, i64 %table, i64 %first, i64 %units, i64 %step, i64 %k)
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %blocks
  br i1 %more, label %loop, label %end
end:
  ret void
}

; --- work on the task that is published: by the caller (index 0) and by workers -----------

define internal void @wake_one(ptr %pool, i64 %parts) {
  %place = getelementptr i8, ptr %pool, i64 $next_worker
  %seen = load atomic i64, ptr %place monotonic, align 8
  %some = icmp ult i64 %seen, %parts
  br i1 %some, label %take, label %end
take:
  %index = atomicrmw add ptr %place, i64 1 monotonic
  %ours = icmp ult i64 %index, %parts
  br i1 %ours, label %look, label %end
look:
  %record = call ptr @record(ptr %pool, i64 %index)
  %sleeps = getelementptr i8, ptr %record, i64 $sleeps
  %asleep = load atomic i64, ptr %sleeps seq_cst, align 8
  %away = icmp eq i64 %asleep, 1
  br i1 %away, label %rouse, label %end
rouse:
  %before = atomicrmw xchg ptr %sleeps, i64 0 seq_cst
  %slept = icmp eq i64 %before, 1
  br i1 %slept, label %release, label %end
release:
  %place_of_lock = getelementptr i8, ptr %record, i64 $lock
  %lock = load ptr, ptr %place_of_lock
  call void @tinygrad_cg_release(ptr %lock)
  br label %end
end:
  ret void
}

define internal i64 @work(ptr %pool, i64 %index) {
entry:
  %place_of_address = getelementptr i8, ptr %pool, i64 $address
  %place_of_table = getelementptr i8, ptr %pool, i64 $table
  %place_of_first = getelementptr i8, ptr %pool, i64 $first
  %place_of_units = getelementptr i8, ptr %pool, i64 $units
  %place_of_step = getelementptr i8, ptr %pool, i64 $step
  %place_of_blocks = getelementptr i8, ptr %pool, i64 $blocks
  %place_of_parts = getelementptr i8, ptr %pool, i64 $parts
  %place_of_done = getelementptr i8, ptr %pool, i64 $done
  %all = load atomic i64, ptr %place_of_parts acquire, align 8
  %joins = icmp ult i64 %index, %all
  br i1 %joins, label %part, label %nothing
nothing:
  ret i64 0

part:  ; our own, then those after it
  %turn = phi i64 [0, %entry], [%next_turn, %empty]
  %had = phi i64 [0, %entry], [%have, %empty]
  %sum = add i64 %index, %turn
  %over = icmp uge i64 %sum, %all
  %less = sub i64 %sum, %all
  %p = select i1 %over, i64 %less, i64 %sum
  %place = call ptr @record(ptr %pool, i64 %p)
  %after = add i64 %p, 1
  br label %claim

claim:
  %have = phi i64 [%had, %part], [%have, %taken], [%more, %run]
  %word = load atomic i64, ptr %place acquire, align 8
  %left = and i64 %word, 4294967295
  %none = icmp eq i64 %left, 0
  br i1 %none, label %empty, label %read
read:  ; the task cannot change as long as this word does not
  %address = load atomic i64, ptr %place_of_address monotonic, align 8
  %table = load atomic i64, ptr %place_of_table monotonic, align 8
  %first = load atomic i64, ptr %place_of_first monotonic, align 8
  %units = load atomic i64, ptr %place_of_units monotonic, align 8
  %step = load atomic i64, ptr %place_of_step monotonic, align 8
  %blocks = load atomic i64, ptr %place_of_blocks monotonic, align 8
  %parts = load atomic i64, ptr %place_of_parts monotonic, align 8
  %inside = icmp ult i64 %index, %parts
  br i1 %inside, label %try, label %empty
try:
  %one_less = sub i64 %word, 1
  %pair = cmpxchg ptr %place, i64 %word, i64 %one_less acq_rel monotonic
  %good = extractvalue {i64, i1} %pair, 1
  br i1 %good, label %run, label %taken
taken:
  br label %claim
run:
  call void @wake_one(ptr %pool, i64 %parts)
  call void @wake_one(ptr %pool, i64 %parts)
  %product = mul i64 %blocks, %after
  %end = udiv i64 %product, %parts
  %k = sub i64 %end, %left
  call void @block(i64 %address, i64 %table, i64 %first, i64 %units, i64 %step, i64 %k)
  %more = add i64 %have, 1
  br label %claim

empty:
  %next_turn = add i64 %turn, 1
  %again = icmp ult i64 %next_turn, %all
  br i1 %again, label %part, label %end_of_parts
end_of_parts:
  %some = icmp ne i64 %have, 0
  br i1 %some, label %report, label %nothing
report:  ; until now the task had to stay
  %wanted = load atomic i64, ptr %place_of_blocks monotonic, align 8
  %before = atomicrmw add ptr %place_of_done, i64 %have acq_rel
  %now = add i64 %before, %have
  %full = or i64 %wanted, $WAITS
  %last = icmp eq i64 %now, %full
  br i1 %last, label %tell, label %leave
tell:
  %place_of_lock = getelementptr i8, ptr %pool, i64 $finished
  %lock = load ptr, ptr %place_of_lock
  call void @tinygrad_cg_release(ptr %lock)
  br label %leave
leave:
  ret i64 %have
}

; --- the cores that a worker may run on: a thread has the set that it began with, or that
; somebody has given it since, and the one that it keeps to -----------------------------------

declare i1 @llvm.vector.reduce.and.$mask($bits)

define internal void @all_cores(ptr %given, ptr %kept) {
entry:
  store $set zeroinitializer, ptr %kept, align 8
  %got = call i32 @tinygrad_cg_getaffinity(i32 0, i64 $CORES, ptr %kept)
  %all = load $set, ptr %kept, align 8
  store $set %all, ptr %given, align 8
  ret void
}

; The word of a set that has a core's bit, and that bit.
define internal {ptr, i64} @bit_of(ptr %set, i64 %core) alwaysinline {
  %number = lshr i64 %core, 6
  %word = getelementptr i64, ptr %set, i64 %number
  %position = and i64 %core, 63
  %bit = shl i64 1, %position
  %half = insertvalue {ptr, i64} poison, ptr %word, 0
  %both = insertvalue {ptr, i64} %half, i64 %bit, 1
  ret {ptr, i64} %both
}

define internal void @leave_core(i64 %core, ptr %given, ptr %kept) {
entry:
  %place = alloca $set, align 8
  %got = call i32 @tinygrad_cg_getaffinity(i32 0, i64 $CORES, ptr %place)
  %failed = icmp slt i32 %got, 0
  br i1 %failed, label %end, label %look
look:
  %now = load $set, ptr %place, align 8
  %before = load $set, ptr %kept, align 8
  %alike = icmp eq $set %now, %before
  %ours = call i1 @llvm.vector.reduce.and.$mask($bits %alike)
  %had = load $set, ptr %given, align 8
  %all = select i1 %ours, $set %had, $set %now
  store $set %all, ptr %given, align 8
  store $set %all, ptr %place, align 8
  %found = call {ptr, i64} @bit_of(ptr %place, i64 %core)
  %word = extractvalue {ptr, i64} %found, 0
  %bit = extractvalue {ptr, i64} %found, 1
  %with = load i64, ptr %word
  %rest = xor i64 %bit, -1
  %without = and i64 %with, %rest
  store i64 %without, ptr %word
  %others = load $set, ptr %place, align 8
  %refused = call i32 @tinygrad_cg_setaffinity(i32 0, i64 $CORES, ptr %place)
  %good = icmp eq i32 %refused, 0
  %result = select i1 %good, $set %others, $set %now
  store $set %result, ptr %kept, align 8
  br label %end
end:
  ret void
}

; Sleep until the one worker has done its block. If that takes long it may wait behind other
; processes: it then gets this core, on which nobody runs meanwhile.
define internal void @wait_for_one(ptr %record, ptr %lock) {
entry:
  %soon = call i32 @tinygrad_cg_acquire_timed(ptr %lock, i64 $PATIENCE, i32 0)
  %done = icmp eq i32 %soon, 1
  br i1 %done, label %end, label %late
late:
  %place = getelementptr i8, ptr %record, i64 $thread
  %thread = load atomic i32, ptr %place acquire, align 8
  %here = call i32 @tinygrad_cg_getcpu()
  %core = sext i32 %here to i64
  %cores = alloca $set, align 8
  store $set zeroinitializer, ptr %cores, align 8
  %known = icmp ult i64 %core, $most_cores
  br i1 %known, label %ask, label %wait
ask:
  %got = call i32 @tinygrad_cg_getaffinity(i32 %thread, i64 $CORES, ptr %cores)
  %failed = icmp slt i32 %got, 0
  br i1 %failed, label %wait, label %bring
bring:
  %one = alloca $set, align 8
  store $set zeroinitializer, ptr %one, align 8
  %found = call {ptr, i64} @bit_of(ptr %one, i64 %core)
  %word = extractvalue {ptr, i64} %found, 0
  %bit = extractvalue {ptr, i64} %found, 1
  store i64 %bit, ptr %word
  %brought = call i32 @tinygrad_cg_setaffinity(i32 %thread, i64 $CORES, ptr %one)
  %first = call i32 @tinygrad_cg_acquire(ptr %lock, i32 1)
  %sent = call i32 @tinygrad_cg_setaffinity(i32 %thread, i64 $CORES, ptr %cores)
  br label %end
wait:
  %second = call i32 @tinygrad_cg_acquire(ptr %lock, i32 1)
  br label %end
end:
  ret void
}

; --- a worker's life ------------------------------------------------------------------------

define void @worker(ptr %record) {
entry:
  %place_of_pool = getelementptr i8, ptr %record, i64 $pool
  %pool = load ptr, ptr %place_of_pool
  %place_of_index = getelementptr i8, ptr %record, i64 $index
  %index = load i64, ptr %place_of_index
  %place_of_lock = getelementptr i8, ptr %record, i64 $lock
  %lock = load ptr, ptr %place_of_lock
  %sleeps = getelementptr i8, ptr %record, i64 $sleeps
  %generation = getelementptr i8, ptr %pool, i64 $generation
  %place_of_spins = getelementptr i8, ptr %pool, i64 $spins
  %place_of_core = getelementptr i8, ptr %pool, i64 $core
  %near = getelementptr i8, ptr %pool, i64 $near
  %given_cores = alloca $set, align 8
  %kept_cores = alloca $set, align 8
  call void @all_cores(ptr %given_cores, ptr %kept_cores)
  %own = call i32 @tinygrad_cg_gettid()
  %place_of_own = getelementptr i8, ptr %record, i64 $thread
  store atomic i32 %own, ptr %place_of_own release, align 8
  br label %look
look:
  %seen = phi i64 [0, %entry], [%seen, %pause], [%now, %close_by], [%now, %apart], [%seen, %woken]
  %count = phi i64 [0, %entry], [%spun, %pause], [%spins, %close_by], [%start, %apart], [0, %woken]
  %now = load atomic i64, ptr %generation acquire, align 8
  %new = icmp ne i64 %now, %seen
  br i1 %new, label %tried, label %idle
tried:
  %spins = load atomic i64, ptr %place_of_spins monotonic, align 8
  %core = load atomic i64, ptr %place_of_core monotonic, align 8
  %here = call i32 @tinygrad_cg_getcpu()
  %ours = sext i32 %here to i64
  %same = icmp eq i64 %ours, %core
  %known = icmp ult i64 %ours, $most_cores
  %close = and i1 %known, %same
  br i1 %close, label %move, label %apart
move:
  call void @leave_core(i64 %ours, ptr %given_cores, ptr %kept_cores)
  %there = call i32 @tinygrad_cg_getcpu()
  %moved = icmp ne i32 %there, %here
  br i1 %moved, label %apart, label %close_by
close_by:  ; who looks for work here, or for its end, keeps the other one from it
  store atomic i64 1, ptr %near monotonic, align 8
  %much = call i64 @work(ptr %pool, i64 %index)
  br label %look
apart:
  %did = call i64 @work(ptr %pool, i64 %index)
  %useful = icmp ne i64 %did, 0
  %start = select i1 %useful, i64 0, i64 %count
  br label %look
idle:
  %spun = add i64 %count, 1
  %most = load atomic i64, ptr %place_of_spins monotonic, align 8
  %tired = icmp ugt i64 %spun, %most
  br i1 %tired, label %sleep, label %pause
pause:
  $pause
  br label %look
sleep:  ; a task that came before others saw that we sleep is not missed
  %awake = atomicrmw xchg ptr %sleeps, i64 1 seq_cst
  %latest = load atomic i64, ptr %generation seq_cst, align 8
  %came = icmp ne i64 %latest, %seen
  br i1 %came, label %rise, label %wait
rise:
  %pair = cmpxchg ptr %sleeps, i64 1, i64 0 seq_cst seq_cst
  %up = extractvalue {i64, i1} %pair, 1
  br i1 %up, label %woken, label %wait
wait:
  %got = call i32 @tinygrad_cg_acquire(ptr %lock, i32 1)
  br label %woken
woken:
  br label %look
}

; --- what Python calls ------------------------------------------------------------------------

define internal i64 @argument(ptr %arguments, i64 %k) alwaysinline {
  %place = getelementptr ptr, ptr %arguments, i64 %k
  %object = load ptr, ptr %place
  %number = call i64 @tinygrad_cg_as_integer(ptr %object)
  ret i64 %number
}

define internal void @write_addresses(ptr %table, ptr %items, i64 %count) alwaysinline {
entry:
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %loop, label %end
loop:
  %k = phi i64 [0, %entry], [%next, %loop]
  %item = getelementptr ptr, ptr %items, i64 %k
  %array = load ptr, ptr %item
  %place = getelementptr i8, ptr %array, i64 $DATA
  %data = load i64, ptr %place
  %word = getelementptr i64, ptr %table, i64 %k
  store i64 %data, ptr %word
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}

; share(pool, threads, arrays, address, table, first, units, step): how many blocks the caller did
define ptr @share(ptr %self, ptr %arguments, i64 %given) {
entry:
  %pool_number = call i64 @argument(ptr %arguments, i64 0)
  %threads = call i64 @argument(ptr %arguments, i64 1)
  %place_of_arrays = getelementptr ptr, ptr %arguments, i64 2
  %arrays = load ptr, ptr %place_of_arrays
  %address = call i64 @argument(ptr %arguments, i64 3)
  %table = call i64 @argument(ptr %arguments, i64 4)
  %first = call i64 @argument(ptr %arguments, i64 5)
  %units = call i64 @argument(ptr %arguments, i64 6)
  %step = call i64 @argument(ptr %arguments, i64 7)
  %pool = inttoptr i64 %pool_number to ptr
  %words = inttoptr i64 %table to ptr
  %place_of_length = getelementptr i8, ptr %arrays, i64 $LENGTH
  %length = load i64, ptr %place_of_length
  %items = getelementptr i8, ptr %arrays, i64 $ITEMS
  call void @write_addresses(ptr %words, ptr %items, i64 %length)
  %up = add i64 %units, %step
  %above = sub i64 %up, 1
  %blocks = sdiv i64 %above, %step
  %thread = call ptr @tinygrad_cg_save_thread()
  %place_of_workers = getelementptr i8, ptr %pool, i64 $workers
  %workers = load i64, ptr %place_of_workers
  %present = add i64 %workers, 1
  %wanted = call i64 @llvm.smin.i64(i64 %threads, i64 %blocks)
  %parts = call i64 @llvm.smin.i64(i64 %wanted, i64 %present)
  %several = icmp sgt i64 %parts, 1
  %countable = icmp slt i64 %blocks, 2147483648
  %shared = and i1 %several, %countable
  %busy = getelementptr i8, ptr %pool, i64 $busy
  br i1 %shared, label %try, label %alone
try:
  %pair = cmpxchg ptr %busy, i64 0, i64 1 acq_rel monotonic
  %ours = extractvalue {i64, i1} %pair, 1
  br i1 %ours, label %owner, label %alone
owner:
  %place_of_skip = getelementptr i8, ptr %pool, i64 $skip
  %skip = load i64, ptr %place_of_skip
  %left = icmp sgt i64 %skip, 0
  %two = icmp eq i64 %parts, 2
  %skipped = and i1 %left, %two
  br i1 %skipped, label %idle, label %describe
idle:
  %fewer = sub i64 %skip, 1
  store i64 %fewer, ptr %place_of_skip
  store atomic i64 0, ptr %busy release, align 8
  br label %alone
alone:
  call void @all_blocks(i64 %address, i64 %table, i64 %first, i64 %units, i64 %step, i64 %blocks)
  br label %end

describe:
  %place_of_address = getelementptr i8, ptr %pool, i64 $address
  store atomic i64 %address, ptr %place_of_address monotonic, align 8
  %place_of_table = getelementptr i8, ptr %pool, i64 $table
  store atomic i64 %table, ptr %place_of_table monotonic, align 8
  %place_of_first = getelementptr i8, ptr %pool, i64 $first
  store atomic i64 %first, ptr %place_of_first monotonic, align 8
  %place_of_units = getelementptr i8, ptr %pool, i64 $units
  store atomic i64 %units, ptr %place_of_units monotonic, align 8
  %place_of_step = getelementptr i8, ptr %pool, i64 $step
  store atomic i64 %step, ptr %place_of_step monotonic, align 8
  %place_of_blocks = getelementptr i8, ptr %pool, i64 $blocks
  store atomic i64 %blocks, ptr %place_of_blocks monotonic, align 8
  %place_of_parts = getelementptr i8, ptr %pool, i64 $parts
  store atomic i64 %parts, ptr %place_of_parts monotonic, align 8
  %place_of_worker = getelementptr i8, ptr %pool, i64 $next_worker
  store atomic i64 1, ptr %place_of_worker monotonic, align 8
  %here = call i32 @tinygrad_cg_getcpu()
  %core = sext i32 %here to i64
  %place_of_core = getelementptr i8, ptr %pool, i64 $core
  store atomic i64 %core, ptr %place_of_core monotonic, align 8
  %near = getelementptr i8, ptr %pool, i64 $near
  store atomic i64 0, ptr %near monotonic, align 8
  %done = getelementptr i8, ptr %pool, i64 $done
  store atomic i64 0, ptr %done monotonic, align 8
  %generation = getelementptr i8, ptr %pool, i64 $generation
  %previous = load atomic i64, ptr %generation monotonic, align 8
  %next = add i64 %previous, 1
  %high = shl i64 %next, 32
  br label %publish
publish:
  %p = phi i64 [0, %describe], [%q, %publish]
  %begin = phi i64 [0, %describe], [%stop, %publish]
  %q = add i64 %p, 1
  %product = mul i64 %blocks, %q
  %stop = udiv i64 %product, %parts
  %size = sub i64 %stop, %begin
  %claims = or i64 %high, %size
  %place = call ptr @record(ptr %pool, i64 %p)
  store atomic i64 %claims, ptr %place release, align 8
  %again = icmp ult i64 %q, %parts
  br i1 %again, label %publish, label %go
go:
  %was = atomicrmw xchg ptr %generation, i64 %next seq_cst
  %mine = call i64 @work(ptr %pool, i64 0)
  %place_of_spins = getelementptr i8, ptr %pool, i64 $spins
  %spins = load atomic i64, ptr %place_of_spins monotonic, align 8
  br label %look
look:  ; whether claimed blocks are done
  %count = phi i64 [0, %go], [%spun, %pause]
  %sofar = load atomic i64, ptr %done acquire, align 8
  %complete = icmp eq i64 %sofar, %blocks
  br i1 %complete, label %over, label %wait
wait:
  %spun = add i64 %count, 1
  %enough = icmp ugt i64 %spun, %spins
  %beside = load atomic i64, ptr %near monotonic, align 8
  %crowded = icmp ne i64 %beside, 0
  %tired = or i1 %enough, %crowded
  br i1 %tired, label %sleep, label %pause
pause:
  $pause
  br label %look
sleep:
  %before = atomicrmw or ptr %done, i64 $WAITS acq_rel
  %late = icmp eq i64 %before, %blocks
  br i1 %late, label %over, label %doze
doze:
  %place_of_lock = getelementptr i8, ptr %pool, i64 $finished
  %lock = load ptr, ptr %place_of_lock
  %one = icmp eq i64 %parts, 2
  br i1 %one, label %with_one, label %with_many
with_one:
  %worker = call ptr @record(ptr %pool, i64 1)
  call void @wait_for_one(ptr %worker, ptr %lock)
  br label %over
with_many:
  %got = call i32 @tinygrad_cg_acquire(ptr %lock, i32 1)
  br label %over
over:
  %crowd = load atomic i64, ptr %near monotonic, align 8
  %place_of_backoff = getelementptr i8, ptr %pool, i64 $backoff
  %backoff = load i64, ptr %place_of_backoff
  %tasks = mul i64 %crowd, %backoff
  %long = select i1 %two, i64 %tasks, i64 0
  store i64 %long, ptr %place_of_skip
  store atomic i64 0, ptr %busy release, align 8
  br label %end
end:
  %result = phi i64 [%blocks, %alone], [%mine, %over]
  call void @tinygrad_cg_restore_thread(ptr %thread)
  %object = call ptr @tinygrad_cg_from_integer(i64 %result)
  ret ptr %object
}

; launch(*arrays) of a kernel's table with the address, the units, and then the kernel's own words:
; under Python's lock, so no other thread writes to the table meanwhile.
define ptr @launch(ptr %self, ptr %arguments, i64 %given) {
  %place = getelementptr i8, ptr %self, i64 $DATA
  %table = load ptr, ptr %place
  %address = load ptr, ptr %table
  %place_of_units = getelementptr i8, ptr %table, i64 8
  %units = load i64, ptr %place_of_units
  %words = getelementptr i8, ptr %table, i64 16
  call void @write_addresses(ptr %words, ptr %arguments, i64 %given)
  %number = ptrtoint ptr %words to i64
  call void %address(i64 %number, i64 0, i64 %units)
  %object = call ptr @tinygrad_cg_from_integer(i64 0)
  ret ptr %object
}
