# Debian's ruby-dalli, which speaks the binary protocol: dalli.rb HOST PORT.
require 'dalli'

client = Dalli::Client.new("#{ARGV[0]}:#{ARGV[1]}", socket_timeout: 20, value_max_bytes: 1 << 20, compress: false)
$failed = 0

def check(what)
  is_so = begin
    yield
  rescue StandardError => e
    what = "#{what}: #{e.class} #{e.message}"
    false
  end
  puts "#{is_so ? 'pass' : 'FAIL'}  #{what}"
  $failed = 1 unless is_so
end

def raw(value)
  [value, 0, { raw: true }]
end

check('set, get') { client.set('da-a', 'text') && client.get('da-a') == 'text' }
check('get of nothing') { client.get('da-none').nil? }
['', "two\r\nlines", 42, 1.5, { 'a' => [1, 2] }].each { |value| check("value #{value.inspect}") { client.set('da-v', value) && client.get('da-v') == value } }
check('quiet sets') do
  client.multi { 200.times { |n| client.set("da-m#{n}", n) } }
  client.get_multi((0...400).step(2).map { |n| "da-m#{n}" }) == (0...200).step(2).to_h { |n| ["da-m#{n}", n] }
end
check('add, replace') do
  client.delete('da-b')
  client.add('da-b', *raw('b')) && !client.add('da-b', *raw('c')) && client.replace('da-b', *raw('bb')) &&
    [0, nil, false].include?(client.replace('da-none', 'x'))
end
check('append, prepend') { client.append('da-b', '>') && client.prepend('da-b', '<') && client.get('da-b', raw: true) == '<bb>' }
check('cas') { client.cas('da-a') { |value| "#{value}!" } && client.get('da-a') == 'text!' }
check('set_cas') do
  value, cas = client.get_cas('da-a')
  value == 'text!' && client.set_cas('da-a', 'new', cas) && !client.set_cas('da-a', 'newer', cas) && client.get('da-a') == 'new'
end
check('get_multi_cas') { client.get_multi_cas('da-a', 'da-none').keys == ['da-a'] }
check('delete_cas') do
  _, cas = client.get_cas('da-v')
  !client.delete_cas('da-v', cas + 1) && client.delete_cas('da-v', cas) && client.get('da-v').nil?
end
check('incr, decr') do
  client.delete('da-n')
  client.incr('da-n', 1).nil? && client.incr('da-n', 1, 0, 10) == 10 && client.incr('da-n', 5) == 15 && client.decr('da-n', 20).zero?
end
check('touch, gat') { client.touch('da-a', 100) && client.touch('da-none', 100).nil? && client.gat('da-a', 200) == 'new' && client.gat('da-none').nil? }
check('fetch') { client.fetch('da-f', 100) { 'made' } == 'made' && client.fetch('da-f', 100) { 'not made' } == 'made' }
check('delete') { client.delete('da-a') && client.get('da-a').nil? }
large = '0123456789' * 92_160
check('900 KiB') { client.set('da-large', *raw(large)) && client.get('da-large', raw: true) == large }
check('version') { client.version.values.first =~ /^\d/ }
check('stats') { client.stats.values.first['curr_items'].to_i.positive? }
check('stats settings') { client.stats(:settings).values.first['item_size_max'] == '1048576' }
check('alive!') { client.alive! || true }
check('flush') { client.flush && client.get('da-b').nil? }
exit $failed
