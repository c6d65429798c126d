echo 0 >/sys/module/suspend/parameters/pm_test_delay
echo 1 >/sys/power/pm_print_times
for level in freezer devices; do
echo $level >/sys/power/pm_test; timeout 20 sh -c 'echo mem >/sys/power/state'
done
echo none >/sys/power/pm_test
