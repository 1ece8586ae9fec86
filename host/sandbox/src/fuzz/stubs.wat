;; A component that does nothing but let the host call what the host offers to plugins: each import is exported again, with
;; the numbers that a core module passes for arguments. `poke` and `place` decide what is in its memory, and where what the
;; host writes there goes. A second version of some interfaces has functions of other shapes than the host's.
;;
;; `stubs.wasm` is what `wat` makes of it; a test of the workspace keeps it so.
(component
  (core module $memory
    (memory (export "memory") 64 64)
    (global $next (mut i32) (i32.const 65536))
    (func (export "place") (param i32) (global.set $next (local.get 0)))
    (func (export "poke") (param i32 i64) (i64.store (local.get 0) (local.get 1)))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (global.get $next)
      (global.set $next (i32.add (global.get $next) (local.get 3)))))
  (core instance $memory (instantiate $memory))
  (alias core export $memory "memory" (core memory $m))
  (alias core export $memory "realloc" (core func $realloc))

  (import "wasi:io/streams@0.2.0" (instance $streams
    (export "error" (type $error (sub resource)))
    (export "pollable" (type $pollable (sub resource)))
    (export "input-stream" (type $input (sub resource)))
    (export "output-stream" (type $output (sub resource)))
    (type $v (variant (case "last-operation-failed" (own $error)) (case "closed")))
    (export "stream-error" (type $failed (eq $v)))
    (export "[method]input-stream.read" (func (param "self" (borrow $input)) (param "len" u64) (result (result (list u8) (error $failed)))))
    (export "[method]input-stream.blocking-read" (func (param "self" (borrow $input)) (param "len" u64) (result (result (list u8) (error $failed)))))
    (export "[method]input-stream.subscribe" (func (param "self" (borrow $input)) (result (own $pollable))))
    (export "[method]output-stream.check-write" (func (param "self" (borrow $output)) (result (result u64 (error $failed)))))
    (export "[method]output-stream.write" (func (param "self" (borrow $output)) (param "contents" (list u8)) (result (result (error $failed)))))
    (export "[method]output-stream.blocking-write-and-flush" (func (param "self" (borrow $output)) (param "contents" (list u8)) (result (result (error $failed)))))
    (export "[method]output-stream.flush" (func (param "self" (borrow $output)) (result (result (error $failed)))))
    (export "[method]output-stream.blocking-flush" (func (param "self" (borrow $output)) (result (result (error $failed)))))
    (export "[method]output-stream.subscribe" (func (param "self" (borrow $output)) (result (own $pollable))))))
  (alias export $streams "input-stream" (type $input))
  (alias export $streams "output-stream" (type $output))
  (alias export $streams "pollable" (type $pollable))
  (core func $f0 (canon lower (func $streams "[method]input-stream.read") (memory $m) (realloc $realloc)))
  (func (export "call-0") (param "p0" u32) (param "p1" u64) (param "p2" u32) (canon lift (core func $f0)))
  (core func $f1 (canon lower (func $streams "[method]input-stream.blocking-read") (memory $m) (realloc $realloc)))
  (func (export "call-1") (param "p0" u32) (param "p1" u64) (param "p2" u32) (canon lift (core func $f1)))
  (core func $f2 (canon lower (func $streams "[method]input-stream.subscribe") (memory $m) (realloc $realloc)))
  (func (export "call-2") (param "p0" u32) (result u32) (canon lift (core func $f2)))
  (core func $f3 (canon lower (func $streams "[method]output-stream.check-write") (memory $m) (realloc $realloc)))
  (func (export "call-3") (param "p0" u32) (param "p1" u32) (canon lift (core func $f3)))
  (core func $f4 (canon lower (func $streams "[method]output-stream.write") (memory $m) (realloc $realloc)))
  (func (export "call-4") (param "p0" u32) (param "p1" u32) (param "p2" u32) (param "p3" u32) (canon lift (core func $f4)))
  (core func $f5 (canon lower (func $streams "[method]output-stream.blocking-write-and-flush") (memory $m) (realloc $realloc)))
  (func (export "call-5") (param "p0" u32) (param "p1" u32) (param "p2" u32) (param "p3" u32) (canon lift (core func $f5)))
  (core func $f6 (canon lower (func $streams "[method]output-stream.flush") (memory $m) (realloc $realloc)))
  (func (export "call-6") (param "p0" u32) (param "p1" u32) (canon lift (core func $f6)))
  (core func $f7 (canon lower (func $streams "[method]output-stream.blocking-flush") (memory $m) (realloc $realloc)))
  (func (export "call-7") (param "p0" u32) (param "p1" u32) (canon lift (core func $f7)))
  (core func $f8 (canon lower (func $streams "[method]output-stream.subscribe") (memory $m) (realloc $realloc)))
  (func (export "call-8") (param "p0" u32) (result u32) (canon lift (core func $f8)))

  (import "wasi:io/poll@0.2.0" (instance $poll
    (alias outer 1 $pollable (type $outer))
    (export "pollable" (type $own (eq $outer)))
    (export "[method]pollable.block" (func (param "self" (borrow $own))))
    (export "[method]pollable.ready" (func (param "self" (borrow $own)) (result bool)))))
  (core func $f9 (canon lower (func $poll "[method]pollable.block") (memory $m) (realloc $realloc)))
  (func (export "call-9") (param "p0" u32) (canon lift (core func $f9)))
  (core func $f10 (canon lower (func $poll "[method]pollable.ready") (memory $m) (realloc $realloc)))
  (func (export "call-10") (param "p0" u32) (result u32) (canon lift (core func $f10)))

  (import "wasi:cli/stdin@0.2.0" (instance $stdin
    (alias outer 1 $input (type $outer))
    (export "input-stream" (type $own (eq $outer)))
    (export "get-stdin" (func (result (own $own))))))
  (core func $f11 (canon lower (func $stdin "get-stdin") (memory $m) (realloc $realloc)))
  (func (export "call-11")  (result u32) (canon lift (core func $f11)))

  (import "wasi:cli/stdout@0.2.0" (instance $stdout
    (alias outer 1 $output (type $outer))
    (export "output-stream" (type $own (eq $outer)))
    (export "get-stdout" (func (result (own $own))))))
  (core func $f12 (canon lower (func $stdout "get-stdout") (memory $m) (realloc $realloc)))
  (func (export "call-12")  (result u32) (canon lift (core func $f12)))

  (import "wasi:cli/stderr@0.2.0" (instance $stderr
    (alias outer 1 $output (type $outer))
    (export "output-stream" (type $own (eq $outer)))
    (export "get-stderr" (func (result (own $own))))))
  (core func $f13 (canon lower (func $stderr "get-stderr") (memory $m) (realloc $realloc)))
  (func (export "call-13")  (result u32) (canon lift (core func $f13)))

  (import "wasi:cli/terminal-stdin@0.2.0" (instance $terminal-stdin
    (export "terminal-input" (type $t (sub resource)))
    (export "get-terminal-stdin" (func (result (option (own $t)))))))
  (core func $f14 (canon lower (func $terminal-stdin "get-terminal-stdin") (memory $m) (realloc $realloc)))
  (func (export "call-14") (param "p0" u32) (canon lift (core func $f14)))

  (import "wasi:cli/terminal-stdout@0.2.0" (instance $terminal-stdout
    (export "terminal-output" (type $t (sub resource)))
    (export "get-terminal-stdout" (func (result (option (own $t)))))))
  (core func $f15 (canon lower (func $terminal-stdout "get-terminal-stdout") (memory $m) (realloc $realloc)))
  (func (export "call-15") (param "p0" u32) (canon lift (core func $f15)))

  (import "wasi:cli/terminal-stderr@0.2.0" (instance $terminal-stderr
    (export "terminal-output" (type $t (sub resource)))
    (export "get-terminal-stderr" (func (result (option (own $t)))))))
  (core func $f16 (canon lower (func $terminal-stderr "get-terminal-stderr") (memory $m) (realloc $realloc)))
  (func (export "call-16") (param "p0" u32) (canon lift (core func $f16)))

  (import "wasi:cli/environment@0.2.0" (instance $environment
    (export "get-environment" (func (result (list (tuple string string)))))
    (export "get-arguments" (func (result (list string))))
    (export "initial-cwd" (func (result (option string))))))
  (core func $f17 (canon lower (func $environment "get-environment") (memory $m) (realloc $realloc)))
  (func (export "call-17") (param "p0" u32) (canon lift (core func $f17)))
  (core func $f18 (canon lower (func $environment "get-arguments") (memory $m) (realloc $realloc)))
  (func (export "call-18") (param "p0" u32) (canon lift (core func $f18)))
  (core func $f19 (canon lower (func $environment "initial-cwd") (memory $m) (realloc $realloc)))
  (func (export "call-19") (param "p0" u32) (canon lift (core func $f19)))

  (import "wasi:cli/exit@0.2.0" (instance $exit
    (export "exit" (func (param "status" (result))))
    (export "exit-with-code" (func (param "code" u8)))))
  (core func $f20 (canon lower (func $exit "exit") (memory $m) (realloc $realloc)))
  (func (export "call-20") (param "p0" u32) (canon lift (core func $f20)))
  (core func $f21 (canon lower (func $exit "exit-with-code") (memory $m) (realloc $realloc)))
  (func (export "call-21") (param "p0" u32) (canon lift (core func $f21)))

  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $monotonic
    (export "now" (func (result u64)))
    (export "resolution" (func (result u64)))))
  (core func $f22 (canon lower (func $monotonic "now") (memory $m) (realloc $realloc)))
  (func (export "call-22")  (result u64) (canon lift (core func $f22)))
  (core func $f23 (canon lower (func $monotonic "resolution") (memory $m) (realloc $realloc)))
  (func (export "call-23")  (result u64) (canon lift (core func $f23)))

  (import "wasi:clocks/wall-clock@0.2.0" (instance $wall
    (type $r (record (field "seconds" u64) (field "nanoseconds" u32)))
    (export "datetime" (type $datetime (eq $r)))
    (export "now" (func (result $datetime)))
    (export "resolution" (func (result $datetime)))))
  (core func $f24 (canon lower (func $wall "now") (memory $m) (realloc $realloc)))
  (func (export "call-24") (param "p0" u32) (canon lift (core func $f24)))
  (core func $f25 (canon lower (func $wall "resolution") (memory $m) (realloc $realloc)))
  (func (export "call-25") (param "p0" u32) (canon lift (core func $f25)))

  (import "wasi:filesystem/preopens@0.2.0" (instance $preopens
    (export "descriptor" (type $d (sub resource)))
    (export "get-directories" (func (result (list (tuple (own $d) string)))))))
  (core func $f26 (canon lower (func $preopens "get-directories") (memory $m) (realloc $realloc)))
  (func (export "call-26") (param "p0" u32) (canon lift (core func $f26)))

  (import "wasi:filesystem/types@0.2.0" (instance $files
    (export "no-stub" (func (param "offset" u64) (result u32)))))
  (core func $f27 (canon lower (func $files "no-stub") (memory $m) (realloc $realloc)))
  (func (export "call-27") (param "p0" u64) (result u32) (canon lift (core func $f27)))

  (import "wasi:random/random@0.2.0" (instance $random
    (export "get-random-bytes" (func (param "len" u64) (result (list u8))))
    (export "get-random-u64" (func (result u64)))))
  (core func $f28 (canon lower (func $random "get-random-bytes") (memory $m) (realloc $realloc)))
  (func (export "call-28") (param "p0" u64) (param "p1" u32) (canon lift (core func $f28)))
  (core func $f29 (canon lower (func $random "get-random-u64") (memory $m) (realloc $realloc)))
  (func (export "call-29")  (result u64) (canon lift (core func $f29)))

  (import "wasi:random/insecure@0.2.0" (instance $insecure
    (export "get-insecure-random-bytes" (func (param "len" u64) (result (list u8))))
    (export "get-insecure-random-u64" (func (result u64)))))
  (core func $f30 (canon lower (func $insecure "get-insecure-random-bytes") (memory $m) (realloc $realloc)))
  (func (export "call-30") (param "p0" u64) (param "p1" u32) (canon lift (core func $f30)))
  (core func $f31 (canon lower (func $insecure "get-insecure-random-u64") (memory $m) (realloc $realloc)))
  (func (export "call-31")  (result u64) (canon lift (core func $f31)))

  (import "wasi:random/insecure-seed@0.2.0" (instance $seed
    (export "insecure-seed" (func (result (tuple u64 u64))))))
  (core func $f32 (canon lower (func $seed "insecure-seed") (memory $m) (realloc $realloc)))
  (func (export "call-32") (param "p0" u32) (canon lift (core func $f32)))

  (import "troupe:framework/log@0.1.0" (instance $log
    (type $l (enum "error" "warn" "info" "debug"))
    (export "level" (type $level (eq $l)))
    (export "write" (func (param "level" $level) (param "message" string) (param "fields" (list (tuple string string)))))))
  (core func $f33 (canon lower (func $log "write") (memory $m) (realloc $realloc)))
  (func (export "call-33") (param "p0" u32) (param "p1" u32) (param "p2" u32) (param "p3" u32) (param "p4" u32) (canon lift (core func $f33)))

  (import "wasi:io/streams@0.2.9" (instance $odd-streams
    (export "output-stream" (type $output (sub resource)))
    (export "input-stream" (type $input (sub resource)))
    (export "[method]output-stream.write" (func (param "self" (borrow $output)) (param "contents" (list string)) (result (result (list u8)))))
    (export "[method]output-stream.blocking-write-and-flush" (func (param "self" (borrow $output))))
    (export "[method]output-stream.flush" (func (param "self" (borrow $output)) (result u8)))
    (export "[method]output-stream.check-write" (func (param "self" (borrow $output)) (result (result string (error u8)))))
    (export "[method]input-stream.read" (func (param "self" (borrow $input)) (result (result (list u8)))))
    (export "[method]input-stream.subscribe" (func (param "self" (borrow $input)) (result (own $output))))))
  (core func $f34 (canon lower (func $odd-streams "[method]output-stream.write") (memory $m) (realloc $realloc)))
  (func (export "call-34") (param "p0" u32) (param "p1" u32) (param "p2" u32) (param "p3" u32) (canon lift (core func $f34)))
  (core func $f35 (canon lower (func $odd-streams "[method]output-stream.blocking-write-and-flush") (memory $m) (realloc $realloc)))
  (func (export "call-35") (param "p0" u32) (canon lift (core func $f35)))
  (core func $f36 (canon lower (func $odd-streams "[method]output-stream.flush") (memory $m) (realloc $realloc)))
  (func (export "call-36") (param "p0" u32) (result u32) (canon lift (core func $f36)))
  (core func $f37 (canon lower (func $odd-streams "[method]output-stream.check-write") (memory $m) (realloc $realloc)))
  (func (export "call-37") (param "p0" u32) (param "p1" u32) (canon lift (core func $f37)))
  (core func $f38 (canon lower (func $odd-streams "[method]input-stream.read") (memory $m) (realloc $realloc)))
  (func (export "call-38") (param "p0" u32) (param "p1" u32) (canon lift (core func $f38)))
  (core func $f39 (canon lower (func $odd-streams "[method]input-stream.subscribe") (memory $m) (realloc $realloc)))
  (func (export "call-39") (param "p0" u32) (result u32) (canon lift (core func $f39)))

  (import "wasi:cli/stdout@0.2.9" (instance $odd-stdout
    (export "output-stream" (type $t (sub resource)))
    (export "get-stdout" (func (param "one" (own $t)) (param "two" (own $t)) (result (own $t))))))
  (core func $f40 (canon lower (func $odd-stdout "get-stdout") (memory $m) (realloc $realloc)))
  (func (export "call-40") (param "p0" u32) (param "p1" u32) (result u32) (canon lift (core func $f40)))

  (import "wasi:cli/stdin@0.2.9" (instance $odd-stdin
    (export "nothing" (type $t (sub resource)))
    (export "get-stdin" (func (result (own $t))))))
  (core func $f41 (canon lower (func $odd-stdin "get-stdin") (memory $m) (realloc $realloc)))
  (func (export "call-41")  (result u32) (canon lift (core func $f41)))

  (import "wasi:cli/environment@0.2.9" (instance $odd-environment
    (export "get-environment" (func (result u64)))
    (export "get-arguments" (func))
    (export "initial-cwd" (func (param "of" (list (list string))) (result (option u8))))))
  (core func $f42 (canon lower (func $odd-environment "get-environment") (memory $m) (realloc $realloc)))
  (func (export "call-42")  (result u64) (canon lift (core func $f42)))
  (core func $f43 (canon lower (func $odd-environment "get-arguments") (memory $m) (realloc $realloc)))
  (func (export "call-43") (canon lift (core func $f43)))
  (core func $f44 (canon lower (func $odd-environment "initial-cwd") (memory $m) (realloc $realloc)))
  (func (export "call-44") (param "p0" u32) (param "p1" u32) (param "p2" u32) (canon lift (core func $f44)))

  (import "wasi:clocks/wall-clock@0.2.9" (instance $odd-wall
    (type $r (record (field "nanoseconds" u32) (field "seconds" u64)))
    (export "datetime" (type $datetime (eq $r)))
    (export "now" (func (result $datetime)))
    (export "resolution" (func (result (tuple u64 u32))))))
  (core func $f45 (canon lower (func $odd-wall "now") (memory $m) (realloc $realloc)))
  (func (export "call-45") (param "p0" u32) (canon lift (core func $f45)))
  (core func $f46 (canon lower (func $odd-wall "resolution") (memory $m) (realloc $realloc)))
  (func (export "call-46") (param "p0" u32) (canon lift (core func $f46)))

  (import "wasi:random/random@0.2.9" (instance $odd-random
    (export "get-random-bytes" (func (param "len" s64) (result (list u8))))
    (export "get-random-u64" (func (result u8)))))
  (core func $f47 (canon lower (func $odd-random "get-random-bytes") (memory $m) (realloc $realloc)))
  (func (export "call-47") (param "p0" u64) (param "p1" u32) (canon lift (core func $f47)))
  (core func $f48 (canon lower (func $odd-random "get-random-u64") (memory $m) (realloc $realloc)))
  (func (export "call-48")  (result u32) (canon lift (core func $f48)))

  (import "wasi:random/insecure@0.2.9" (instance $odd-insecure
    (export "get-insecure-random-bytes" (func (param "len" u64) (result (list u16))))))
  (core func $f49 (canon lower (func $odd-insecure "get-insecure-random-bytes") (memory $m) (realloc $realloc)))
  (func (export "call-49") (param "p0" u64) (param "p1" u32) (canon lift (core func $f49)))

  (import "troupe:framework/log@0.1.9" (instance $odd-log
    (type $l (enum "error" "warn" "info" "debug"))
    (export "level" (type $level (eq $l)))
    (export "write" (func (param "level" $level) (param "message" (list u8)) (param "fields" string)))))
  (core func $f50 (canon lower (func $odd-log "write") (memory $m) (realloc $realloc)))
  (func (export "call-50") (param "p0" u32) (param "p1" u32) (param "p2" u32) (param "p3" u32) (param "p4" u32) (canon lift (core func $f50)))

  (core func $f51 (canon resource.drop $input))
  (func (export "drop-51") (param "p0" u32) (canon lift (core func $f51)))
  (core func $f52 (canon resource.drop $output))
  (func (export "drop-52") (param "p0" u32) (canon lift (core func $f52)))
  (core func $f53 (canon resource.drop $pollable))
  (func (export "drop-53") (param "p0" u32) (canon lift (core func $f53)))
  (alias core export $memory "place" (core func $place))
  (func (export "place") (param "p0" u32) (canon lift (core func $place)))
  (alias core export $memory "poke" (core func $poke))
  (func (export "poke") (param "p0" u32) (param "p1" u64) (canon lift (core func $poke))))
